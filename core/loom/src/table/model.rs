//! Two lines, one word of bits, and the loop that `Table` in core runs over them.
//!
//! `update`, `settle` and `add` mirror those of core's `Table`, `drain` its `drain` and
//! `drain_line`, with one rule at one moment. A change there is a change here.

use std::sync::atomic::{self, Ordering};

use loom::model::Builder;
use loom::sync::Arc;

use super::cell::{AtomicU64, Cell};
use super::dirty::{self, Visit};
use super::line::{Claim, Line, Pair, Worth};
use super::mistake::Mistake;
use super::slot::{Mark, Slot};

pub(super) const NOW: u64 = 1000;
pub(super) const PAST: u64 = 500;
const RULE: u16 = 1;

/// What a thread does.
pub(super) type Act = fn(&Model);

#[derive(Default)]
pub(super) struct Model {
    lines: [Line; 2],
    word: AtomicU64,
    /// Hits that were handed over. Not loom's: it takes no part.
    handed: atomic::AtomicU64,
}

/// Tries all interleavings of threads, each of which does one act, and checks every end.
pub(super) fn explore(
    mistake: Mistake,
    prepare: impl Fn(&Model) + Send + Sync + 'static,
    acts: &'static [Act],
    check: impl Fn(&Model) + Send + Sync + 'static,
) {
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(move || {
        Mistake::None.make();
        let model = Arc::new(Model::default());
        prepare(&model);
        mistake.make();
        let threads = acts.iter().map(|act| {
            let model = model.clone();
            loom::thread::spawn(move || act(&model))
        });
        for thread in threads.collect::<Vec<_>>() {
            thread.join().unwrap();
        }
        Mistake::None.make();
        check(&model);
    });
}

impl Model {
    /// Even tags are at home in the first line, odd ones in the second.
    fn pair(&self, tag: u64) -> Pair<'_> {
        let home = tag as usize % 2;
        let (home, second) = (&self.lines[home], &self.lines[1 - home]);
        Pair { home, second, mark: Mark::new(tag) }
    }

    fn bit(tag: u64, displaced: bool) -> u64 {
        1 << ((tag + u64::from(displaced)) % 2)
    }

    /// Puts a tag into a slot of its home line.
    pub(super) fn put(&self, tag: u64, place: usize, tat: u64) {
        let slot = Slot::new(Mark::new(tag), RULE, 0, tat);
        assert!(self.pair(tag).home.0[place].replace(Slot::EMPTY, slot));
    }

    /// Charges a tag that will be found, or is given a slot.
    pub(super) fn update(&self, tag: u64, ticks: u64, hits: u64) {
        loop {
            let Some((cell, old, displaced)) = self.pair(tag).find() else {
                match self.settle(tag, NOW + ticks, hits) {
                    Claim::Taken { .. } => return,
                    Claim::Lost => continue,
                    Claim::Full => panic!("no room"),
                }
            };
            let pending = old.pending() + hits;
            let new = old.with(RULE, pending, old.tat().max(NOW) + ticks);
            if Mistake::MarkFirst.is_made() {
                dirty::mark(&self.word, Model::bit(tag, displaced));
            }
            if cell.replace(old, new) {
                if old == old.spent() && !Mistake::NoFoldOfSpent.is_made() {
                    self.fold(tag);
                }
                if pending > 0 {
                    self.mark(tag, displaced);
                }
                return;
            }
        }
    }

    /// The same, when the tag has just been found nowhere.
    pub(super) fn update_late(&self, tag: u64, ticks: u64, hits: u64) {
        if !matches!(self.settle(tag, NOW + ticks, hits), Claim::Taken { .. }) {
            self.update(tag, ticks, hits);
        }
    }

    /// Claims a slot for a tag that was found nowhere.
    fn settle(&self, tag: u64, tat: u64, hits: u64) -> Claim {
        let new = Slot::new(Mark::new(tag), RULE, hits, tat);
        let claim = self.pair(tag).claim(new, worth);
        let Claim::Taken { displaced, .. } = claim else { return claim };
        if !Mistake::NoFold.is_made() {
            self.fold(tag);
        }
        if hits > 0 {
            self.mark(tag, displaced);
        }
        claim
    }

    fn fold(&self, tag: u64) {
        let (mut owed, mut unheard) = (0, 0);
        self.pair(tag).fold(|slot| {
            owed += slot.tat().saturating_sub(NOW);
            unheard += slot.pending();
        });
        if (owed > 0 || unheard > 0) && !Mistake::NoAdd.is_made() {
            self.update(tag, owed, unheard);
        }
    }

    fn mark(&self, tag: u64, displaced: bool) {
        if !Mistake::NoMark.is_made() && !Mistake::MarkFirst.is_made() {
            dirty::mark(&self.word, Model::bit(tag, displaced));
        }
    }

    /// Takes the hits of the lines that are marked, if they are due.
    pub(super) fn drain(&self, due: bool) {
        if Mistake::VisitFirst.is_made() {
            self.visit(u64::MAX, due);
            dirty::take_bits(&self.word);
        } else {
            self.visit(dirty::take_bits(&self.word), due);
        }
    }

    fn visit(&self, bits: u64, due: bool) {
        for (i, line) in self.lines.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1) {
            let mut later = false;
            for cell in &line.0 {
                match dirty::visit(cell, |_| due) {
                    Visit::Nothing => {}
                    Visit::Later => later = true,
                    Visit::Taken(slot) => {
                        self.handed.fetch_add(slot.pending(), Ordering::Relaxed);
                    }
                }
            }
            if later && !Mistake::NoMarkOfLater.is_made() {
                dirty::mark(&self.word, 1 << i);
            }
        }
    }

    pub(super) fn handed(&self) -> u64 {
        self.handed.load(Ordering::Relaxed)
    }

    /// Asserts that a tag is found with this debt, and that no other slot of it has any.
    pub(super) fn owes(&self, tag: u64, ticks: u64) {
        let found = self.pair(tag).find().map_or(0, |(_, slot, _)| slot.tat());
        assert_eq!(found.saturating_sub(NOW), ticks, "debt of {tag} in {:?}", self.slots());
        let slots = self.slots().into_iter().filter(|slot| slot.mark().fingerprint_bits() == tag);
        let live = slots.filter(|slot| slot.tat() > NOW).count();
        assert_eq!(live, usize::from(ticks > 0), "slots of {tag} in {:?}", self.slots());
    }

    /// Hits that are still pending. Asserts that their lines are marked.
    pub(super) fn pending(&self) -> u64 {
        let bits = self.word.load(Ordering::Relaxed);
        let mut sum = 0;
        for (i, line) in self.lines.iter().enumerate() {
            let pending: u64 = line.0.iter().map(|cell| cell.load().pending()).sum();
            assert!(pending == 0 || bits >> i & 1 == 1, "line {i} is not marked");
            sum += pending;
        }
        sum
    }

    fn slots(&self) -> Vec<Slot> {
        self.lines.iter().flat_map(|line| line.0.iter().map(Cell::load)).collect()
    }
}

fn worth(slot: Slot) -> Worth {
    match slot.tat().saturating_sub(NOW) {
        _ if slot.pending() > 0 => Worth::Pending,
        0 => Worth::Nothing,
        ticks => Worth::Debt(ticks),
    }
}
