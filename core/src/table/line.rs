//! Lines of four slots: how a tag's slot is found and claimed.
//!
//! A tag is in its home line. If three slots of the home line were in use when the tag came, it may
//! be in its second line instead. Slots are never emptied, only taken over. So a home line with two
//! empty slots never displaced a tag to its second line.
//!
//! A tag has at most one bucket at any time. A claim first reserves a slot, then reads both lines
//! again, and only then stores the bucket. If the tag got a bucket in the meantime, the claim gives
//! up. If another claim of the tag is in progress, that claim is cancelled. Of two claims, the
//! later one sees the reservation of the earlier one. A process that is killed during a claim
//! leaves a reservation. A reservation is not a bucket, and the next claim that needs the slot
//! takes it over.

use std::{hint, ptr};

use super::cell::{CLAIM_SPINS, Cell, full_fence};
use super::slot::{Mark, Slot};

pub(super) const SLOTS: usize = 4;
/// A home line with this many slots in use may displace a tag to its second line.
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

/// The result of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The bucket is stored, in the second line if `displaced`, else in the home line.
    Taken { displaced: bool },
    /// Another process changed the slots first. The caller must search again.
    Lost,
    /// Every candidate slot has an eviction cost, and eviction was not allowed.
    Full,
}

/// Eviction cost of a slot: 0 if it is reusable, else higher the more its client would regain.
pub(super) type EvictionCost = u64;

impl Line {
    /// Finds the slot with this mark. The value may be torn: see `Cell::load_torn`.
    #[inline]
    pub(super) fn find(&self, mark: Mark) -> Option<(&Cell, Slot)> {
        self.0.iter().find_map(|cell| {
            let head = cell.head();
            let found = head.has(mark) && !head.is_empty() && !head.is_reserved();
            found.then(|| (cell, cell.load_torn(head)))
        })
    }

    /// Finds the slot with this mark and rule, in one comparison per slot. The value may be torn.
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
    /// Returns the tag's slot, its value, which may be torn, and whether it is in the second line.
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

    /// Claims a slot for a tag that has none, and stores its bucket there. The slot is in the home
    /// line unless that is crowded, else in the line with fewer live slots. A slot without eviction
    /// cost comes first. With `evict`, the slot with the lowest cost is taken if there is none.
    /// `on_replace` is called with the previous value of the slot.
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

    /// Chooses the slot to claim. Returns `None` if the tag has a bucket by now.
    fn choose(
        &self,
        eviction_cost: &impl Fn(Slot) -> EvictionCost,
    ) -> Option<(Candidate<'a>, bool)> {
        let home = LineSurvey::of(self.home, self.mark, eviction_cost)?;
        if home.least.eviction_cost == 0 && home.live < CROWDED {
            return Some((home.least, false));
        }
        let second = LineSurvey::of(self.second, self.mark.displaced(), eviction_cost)?;
        let second_wins = match (home.least.eviction_cost, second.least.eviction_cost) {
            (0, 0) => second.live < home.live,
            (ours, theirs) => theirs < ours,
        };
        Some(if second_wins { (second.least, true) } else { (home.least, false) })
    }

    /// Cancels all other claims of the tag. Returns false if the tag already has a bucket.
    fn cancel_other_claims(&self, own: &Cell) -> bool {
        // Orders our reservation before the loads below. Both claims do this, so at least one of
        // them sees the reservation of the other.
        full_fence();
        // A home line that is not crowded has displaced no tag yet. A claim that is displaced later
        // reads the home line again and finds our reservation.
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

/// Takes the bucket out of a slot if `may_clear` accepts it and its eviction cost is 0. The slot
/// stays in use, as after a claim that gave up, because an empty slot would make the line look less
/// crowded than it was. Returns false if the slot has an eviction cost.
pub(super) fn clear(
    cell: &Cell,
    may_clear: impl Fn(Slot) -> bool,
    eviction_cost: impl Fn(Slot) -> EvictionCost,
    on_replace: impl FnOnce(Slot),
) -> bool {
    loop {
        let slot = cell.load();
        if slot.is_empty() || slot.is_reserved() || !may_clear(slot) {
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

/// Returns the slot if it has this mark.
#[inline]
fn owned(cell: &Cell, mark: Mark) -> Option<Slot> {
    let slot = cell.load();
    (slot.mark() == mark && !slot.is_empty()).then_some(slot)
}

/// A slot that a claim could take.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    cell: &'a Cell,
    slot: Slot,
    eviction_cost: EvictionCost,
}

impl Candidate<'_> {
    /// Returns true if this slot is better to take than `other`. With equal cost, an empty slot is
    /// better, else the slot whose bucket was full first, because its tag is the least likely to
    /// return.
    fn is_better(&self, other: &Candidate<'_>) -> bool {
        if self.eviction_cost != other.eviction_cost {
            return self.eviction_cost < other.eviction_cost;
        }
        let (slot, than) = (self.slot, other.slot);
        !than.is_empty()
            && (slot.is_empty() || (slot.rule() == than.rule() && slot.tat() < than.tat()))
    }
}

/// The slots of a line, as a claim sees them.
struct LineSurvey<'a> {
    /// Number of slots with an eviction cost.
    live: usize,
    least: Candidate<'a>,
}

impl<'a> LineSurvey<'a> {
    /// Returns `None` if the tag has a bucket in this line.
    fn of(
        line: &'a Line,
        mark: Mark,
        eviction_cost: impl Fn(Slot) -> EvictionCost,
    ) -> Option<LineSurvey<'a>> {
        let mut live = 0;
        let mut least: Option<Candidate<'a>> = None;
        for cell in &line.0 {
            let slot = cell.load();
            if slot.mark() == mark && !slot.is_empty() {
                if !slot.is_reserved() {
                    return None;
                }
                // A claim of this tag left the slot reserved or is still in progress. The new claim
                // must take this slot and no other.
                wait_for(cell, slot);
                return Some(LineSurvey {
                    live: 0,
                    least: Candidate { cell, slot, eviction_cost: 0 },
                });
            }
            let eviction_cost = if slot.is_empty() { 0 } else { eviction_cost(slot) };
            live += usize::from(eviction_cost > 0);
            let choice = Candidate { cell, slot, eviction_cost };
            if least.as_ref().is_none_or(|least| choice.is_better(least)) {
                least = Some(choice);
            }
        }
        least.map(|least| LineSurvey { live, least })
    }
}

/// Spins until another claim of the same tag ends, for at most `CLAIM_SPINS` loads.
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
