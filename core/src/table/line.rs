//! Lines of four slots, and what may happen to them: find and claim.
//!
//! A tag lives in its home line, or, if three slots of that were in use, perhaps in its second
//! line. Slots are never emptied, only taken over, so a home line with two empty slots has never
//! sent a tag to its second line.
//!
//! A tag has at most one bucket at any time. Whoever claims a slot for it reserves the slot, looks
//! at both lines again, and only then puts the bucket there: if the tag has got a bucket meanwhile,
//! the claim is given up; if another claim is under way, that one is told to give up. Of two claims
//! one has reserved first, so the other sees it. A process killed on the way leaves a reservation,
//! which is no bucket and is taken over by whoever needs the slot.

use std::{hint, ptr};

use super::cell::{CLAIM_SPINS, Cell, full_fence};
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

/// How a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The bucket is there, in the second line or the home line.
    Taken { displaced: bool },
    /// Somebody was faster: look again.
    Lost,
    /// Nothing there is worthless.
    Full,
}

/// Eviction cost of a slot: 0 if it is reusable, else higher the more its client would regain.
pub(super) type EvictionCost = u64;

impl Line {
    /// The slot with this mark, and its value at a glance.
    #[inline]
    pub(super) fn find(&self, mark: Mark) -> Option<(&Cell, Slot)> {
        self.0.iter().find_map(|cell| {
            let head = cell.head();
            let found = head.has(mark) && !head.is_empty() && !head.is_reserved();
            found.then(|| (cell, cell.load_torn(head)))
        })
    }

    /// The same, if it is counted by this rule: one comparison says all.
    #[inline]
    pub(super) fn find_under(&self, rule: u16, mark: Mark) -> Option<(&Cell, Slot)> {
        self.0.iter().find_map(|cell| {
            let head = cell.head();
            head.is_of(mark, rule).then(|| (cell, cell.load_torn(head)))
        })
    }

    fn is_crowded(&self) -> bool {
        self.0.iter().filter(|cell| !cell.head().is_empty()).count() >= CROWDED
    }

    #[inline]
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

    /// Puts a bucket into a slot for a tag that has none: the home line's unless that is crowded,
    /// else the emptier line's; a slot without eviction cost if there is one, else, if `evict`,
    /// the one with the lowest. `on_replace` is called with the previous value of the slot.
    pub(super) fn claim(
        &self,
        new: Slot,
        token: u64,
        evict: bool,
        eviction_cost: impl Fn(Slot) -> EvictionCost,
        on_replace: impl FnOnce(Slot),
    ) -> Claim {
        let Some((choice, displaced)) = self.choose(&eviction_cost) else { return Claim::Lost };
        if choice.eviction_cost > 0 && !evict {
            return Claim::Full;
        }
        let mark = self.mark_in(displaced);
        let reserved = Slot::reserved(mark, token);
        if !choice.cell.replace(choice.slot, reserved) {
            return Claim::Lost;
        }
        on_replace(choice.slot);
        let alone = self.cancel_other_claims(choice.cell);
        let bucket = Slot::new(mark, new.rule(), new.pending(), new.tat());
        let next = if alone { bucket } else { reserved.given_up() };
        match choice.cell.replace(reserved, next) && alone {
            true => Claim::Taken { displaced },
            false => Claim::Lost,
        }
    }

    /// The slot to take. Nothing: the tag has a bucket by now.
    fn choose(&self, eviction_cost: &impl Fn(Slot) -> EvictionCost) -> Option<(Choice<'a>, bool)> {
        let home = Survey::of(self.home, self.mark, eviction_cost)?;
        if home.least.eviction_cost == 0 && home.live < CROWDED {
            return Some((home.least, false));
        }
        let second = Survey::of(self.second, self.mark.displaced(), eviction_cost)?;
        let second_wins = match (home.least.eviction_cost, second.least.eviction_cost) {
            (0, 0) => second.live < home.live,
            (ours, theirs) => theirs < ours,
        };
        Some(if second_wins { (second.least, true) } else { (home.least, false) })
    }

    /// Tells all other claims of the tag to give up. False: the tag has a bucket.
    fn cancel_other_claims(&self, own: &Cell) -> bool {
        // The reservation before this and the loads below, against the same of another claim: one
        // of the two must see the other's.
        full_fence();
        // A home line that is not crowded now has sent nobody away yet; who is sent away later
        // will look here and see us.
        let lines = if self.home.is_crowded() { 2 } else { 1 };
        for (line, displaced) in [(self.home, false), (self.second, true)].into_iter().take(lines) {
            let mark = self.mark_in(displaced);
            for cell in line.0.iter().filter(|cell| !ptr::eq(*cell, own)) {
                while let Some(slot) = owned(cell, mark) {
                    if !slot.is_reserved() {
                        return false;
                    }
                    if slot.is_given_up() || cell.replace(slot, slot.given_up()) {
                        break;
                    }
                }
            }
        }
        true
    }

    fn mark_in(&self, displaced: bool) -> Mark {
        if displaced { self.mark.displaced() } else { self.mark }
    }
}

/// Takes the bucket out of a slot, if `is_meant` says so and the slot has no eviction cost. It stays
/// taken, as after a claim that was given up. Returns false if the slot has an eviction cost.
pub(super) fn clear(
    cell: &Cell,
    is_meant: impl Fn(Slot) -> bool,
    eviction_cost: impl Fn(Slot) -> EvictionCost,
    on_replace: impl FnOnce(Slot),
) -> bool {
    loop {
        let slot = cell.load();
        if slot.is_empty() || slot.is_reserved() || !is_meant(slot) {
            return true;
        }
        if eviction_cost(slot) > 0 {
            return false;
        }
        if cell.replace(slot, slot.given_up()) {
            on_replace(slot);
            return true;
        }
    }
}

/// The slot, if it has this mark.
#[inline]
fn owned(cell: &Cell, mark: Mark) -> Option<Slot> {
    let slot = cell.load();
    (slot.mark() == mark && !slot.is_empty()).then_some(slot)
}

/// A slot that a claim could take.
#[derive(Clone, Copy)]
struct Choice<'a> {
    cell: &'a Cell,
    slot: Slot,
    eviction_cost: EvictionCost,
}

impl Choice<'_> {
    /// Whether this one is better to take. Of those with equal cost, an empty one or the one that
    /// was full first: its tag may be gone, while others are likely to come back.
    fn is_better(&self, other: &Choice<'_>) -> bool {
        if self.eviction_cost != other.eviction_cost {
            return self.eviction_cost < other.eviction_cost;
        }
        let (slot, than) = (self.slot, other.slot);
        !than.is_empty()
            && (slot.is_empty() || (slot.rule() == than.rule() && slot.tat() < than.tat()))
    }
}

/// What a line has to offer to a claim.
struct Survey<'a> {
    /// Slots with an eviction cost.
    live: usize,
    least: Choice<'a>,
}

impl<'a> Survey<'a> {
    /// Nothing: the tag has a bucket in this line.
    fn of(
        line: &'a Line,
        mark: Mark,
        eviction_cost: impl Fn(Slot) -> EvictionCost,
    ) -> Option<Survey<'a>> {
        let mut live = 0;
        let mut least: Option<Choice<'a>> = None;
        for cell in &line.0 {
            let slot = cell.load();
            if slot.mark() == mark && !slot.is_empty() {
                if !slot.is_reserved() {
                    return None;
                }
                // Left by a claim of this tag, or in use by one: no other slot will do.
                wait_for(cell, slot);
                return Some(Survey { live: 0, least: Choice { cell, slot, eviction_cost: 0 } });
            }
            let eviction_cost = if slot.is_empty() { 0 } else { eviction_cost(slot) };
            live += usize::from(eviction_cost > 0);
            let choice = Choice { cell, slot, eviction_cost };
            if least.as_ref().is_none_or(|least| choice.is_better(least)) {
                least = Some(choice);
            }
        }
        least.map(|least| Survey { live, least })
    }
}

/// Gives another claim of the same tag a moment to end.
fn wait_for(cell: &Cell, slot: Slot) {
    if !slot.is_given_up() {
        for _ in 0..CLAIM_SPINS {
            if cell.load() != slot {
                return;
            }
            hint::spin_loop();
        }
    }
}
