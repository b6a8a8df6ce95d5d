//! Lines of four slots, and what may happen to them: find, claim, fold.
//!
//! A tag lives in its home line, or, if three slots of that were in use, perhaps in its second
//! line. Slots are never emptied, only taken over, so a home line with two empty slots has never
//! sent a tag to its second line.
//!
//! Two claims of one tag can race and take two slots. So whoever has claimed looks at both lines
//! again and folds: the first slot of the tag in the order of searching stays, the others are
//! spent and their debt goes where it is found from now on. A process killed in between loses the
//! debt of the claim it was making, no more.

use super::cell::{Cell, full_fence};
use super::slot::{Mark, Slot};

pub(super) const SLOTS: usize = 4;
/// A home line with so many slots in use may send a tag to its second line.
const CROWDED: usize = 3;

/// A cache line of slots.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(super) struct Line(pub(super) [Cell; SLOTS]);

/// The two lines in which a tag can be.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) home: &'a Line,
    pub(super) second: &'a Line,
    /// The tag's mark in its home line.
    pub(super) mark: Mark,
}

/// What is lost with a slot when another tag takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Worth {
    /// A full bucket equals an absent one.
    Nothing,
    /// The more, the more a client could take again.
    Debt(u64),
    /// Hits that have yet to be reported.
    Pending,
}

/// How a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Ours, in the second line or the home line.
    Taken { displaced: bool, from: Slot },
    /// Somebody was faster: look again.
    Lost,
    /// Nothing there can be taken.
    Full,
}

impl Line {
    /// The slot with this mark, and its value at a glance.
    #[inline]
    pub(super) fn find(&self, mark: Mark) -> Option<(&Cell, Slot)> {
        self.0.iter().find_map(|cell| {
            let head = cell.head();
            (head.has(mark) && !head.is_empty()).then(|| (cell, cell.glance(head)))
        })
    }

    fn is_crowded(&self) -> bool {
        self.0.iter().filter(|cell| !cell.head().is_empty()).count() >= CROWDED
    }

    pub(super) fn prefetch(&self) {
        self.0[0].prefetch();
    }
}

impl<'a> Pair<'a> {
    /// The tag's slot, its value at a glance, and whether it lies in the second line.
    pub(super) fn find(&self) -> Option<(&'a Cell, Slot, bool)> {
        if let Some((cell, slot)) = self.home.find(self.mark) {
            return Some((cell, slot, false));
        }
        if !self.home.is_crowded() {
            return None;
        }
        let (cell, slot) = self.second.find(self.mark.displaced())?;
        Some((cell, slot, true))
    }

    /// Takes a slot for a tag that has none: the home line's unless that is crowded, else the
    /// emptier line's; a slot worth nothing if there is one, else the one worth least.
    pub(super) fn claim(&self, new: Slot, worth: impl Fn(Slot) -> Worth) -> Claim {
        let home = Survey::of(self.home, &worth);
        let (choice, displaced) = if home.least.0 == Worth::Nothing && home.live < CROWDED {
            (home.least, false)
        } else {
            let second = Survey::of(self.second, &worth);
            let second_wins = match (home.least.0, second.least.0) {
                (Worth::Nothing, Worth::Nothing) => second.live < home.live,
                (ours, theirs) => theirs < ours,
            };
            if second_wins { (second.least, true) } else { (home.least, false) }
        };
        let (worth, place, from) = choice;
        if worth == Worth::Pending {
            return Claim::Full;
        }
        let line = if displaced { self.second } else { self.home };
        let mark = if displaced { self.mark.displaced() } else { self.mark };
        let new = Slot::new(mark, new.rule(), new.pending(), new.tat());
        match line.0[place].replace(from, new) {
            true => Claim::Taken { displaced, from },
            false => Claim::Lost,
        }
    }

    /// Spends all slots of the tag but the first, and hands over what was in them.
    pub(super) fn fold(&self, mut spent: impl FnMut(Slot)) {
        // The claim before this and the loads below, against the same of another claimer: one of
        // the two must see the other's slot.
        full_fence();
        // A home line that is not crowded now has sent nobody away yet; who is sent away later
        // will look here and see us.
        let lines = if self.home.is_crowded() { 2 } else { 1 };
        let lines =
            [(self.home, self.mark), (self.second, self.mark.displaced())].into_iter().take(lines);
        let mut is_first = true;
        for (cell, mark) in
            lines.flat_map(|(line, mark)| line.0.iter().map(move |cell| (cell, mark)))
        {
            while let Some(slot) = owned(cell, mark) {
                if is_first {
                    is_first = false;
                    break;
                }
                if slot == slot.spent() {
                    break;
                }
                if cell.replace(slot, slot.spent()) {
                    spent(slot);
                    break;
                }
            }
        }
    }
}

/// The slot, if it has this mark.
#[inline]
fn owned(cell: &Cell, mark: Mark) -> Option<Slot> {
    let slot = cell.load();
    (slot.mark() == mark && !slot.is_empty()).then_some(slot)
}

/// Whether a slot has been full for longer, as far as can be told at a glance.
fn is_older(slot: Slot, than: Slot) -> bool {
    !than.is_empty() && (slot.is_empty() || (slot.rule() == than.rule() && slot.tat() < than.tat()))
}

/// What a line has to offer to a claim.
struct Survey {
    /// Slots that are worth something.
    live: usize,
    /// The slot worth least: worth, place, value. Of those worth nothing, an empty one or the one
    /// that was full first: its tag may be gone, while others are likely to come back.
    least: (Worth, usize, Slot),
}

impl Survey {
    fn of(line: &Line, worth: impl Fn(Slot) -> Worth) -> Survey {
        let mut survey = Survey { live: 0, least: (Worth::Pending, 0, Slot::EMPTY) };
        for (place, cell) in line.0.iter().enumerate() {
            let slot = cell.load();
            let worth = if slot.is_empty() { Worth::Nothing } else { worth(slot) };
            survey.live += usize::from(worth != Worth::Nothing);
            if worth < survey.least.0 || (worth == survey.least.0 && is_older(slot, survey.least.2))
            {
                survey.least = (worth, place, slot);
            }
        }
        survey
    }
}
