//! Two lines, one word of dirty bits, and the loop that core's `Table` runs on them.
//!
//! `charge`, `claim_slot` and `eviction_cost` mirror `update`, `claim_slot` and `eviction_cost` of
//! core's `Table`, with one rule. `drain` mirrors `drain` and `drain_line`. When core's functions
//! change, change these as well.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{self, Ordering};

use loom::model::Builder;
use loom::sync::Arc;

use super::cell::{AtomicU64, Cell};
use super::dirty::{self, SlotDrain};
use super::line::{self, Claim, Line, Pair};
use super::mutation::Mutation;
use super::slot::{Mark, Slot};
use super::{monitor, mutated_claim};

pub(super) const NOW: u64 = 1000;
pub(super) const PAST: u64 = 500;
const RULE: u16 = 1;
const TAGS: usize = 24;

/// The actions of one thread.
pub(super) type Act = fn(&Actor);

/// A thread. It uses one token for all its claims. In core every claim has its own token, but only
/// tokens of different threads have to differ.
pub(super) struct Actor {
    model: Arc<Model>,
    token: u64,
}

/// A charge to a bucket.
#[derive(Clone, Copy)]
pub(super) struct Charge {
    pub(super) tag: u64,
    /// Ticks to charge, if the debt stays within the burst.
    pub(super) ticks: u64,
    pub(super) burst: u64,
    pub(super) hits: u64,
    /// The time for which eviction costs are computed. It differs between threads, because clocks
    /// do.
    pub(super) fresh: u64,
    pub(super) evict: bool,
}

impl Charge {
    pub(super) const fn new(tag: u64, ticks: u64) -> Charge {
        Charge { tag, ticks, burst: NOW, hits: 0, fresh: NOW, evict: false }
    }
}

/// The ticks that were charged to and evicted from each tag. Not loom's atomics, because the
/// protocol does not use them.
#[derive(Default)]
struct Sums {
    charged: atomic::AtomicU64,
    evicted: atomic::AtomicU64,
}

#[derive(Default)]
pub(super) struct Model {
    lines: [Line; 2],
    word: AtomicU64,
    sums: [Sums; TAGS],
    drained: atomic::AtomicU64,
    unreported: atomic::AtomicU64,
}

/// Runs one thread per act in all interleavings, and checks the model at the end of each.
pub(super) fn explore(
    mutation: Mutation,
    prepare: impl Fn(&Actor) + Send + Sync + 'static,
    acts: &'static [Act],
    check: impl Fn(&Model) + Send + Sync + 'static,
) {
    let mut builder = Builder::new();
    let bound = builder.preemption_bound.unwrap_or(3);
    // Three threads take a hundred times as long.
    builder.preemption_bound = Some(if acts.len() > 2 { bound.saturating_sub(2) } else { bound });
    builder.check(move || {
        Mutation::None.activate();
        monitor::reset();
        let model = Arc::new(Model::default());
        prepare(&Actor { model: model.clone(), token: 0 });
        mutation.activate();
        let threads = acts.iter().enumerate().map(|(i, act)| {
            let token = if Mutation::OneToken.is_active() { 1 } else { i as u64 + 1 };
            let actor = Actor { model: model.clone(), token };
            loom::thread::spawn(move || act(&actor))
        });
        for thread in threads.collect::<Vec<_>>() {
            thread.join().unwrap();
        }
        Mutation::None.activate();
        check(&model);
        model.keeps_every_charge();
    });
}

impl Actor {
    /// Puts a tag into a slot of its home line.
    pub(super) fn put(&self, tag: u64, index: usize, tat: u64) {
        self.put_slot(tag, index, Slot::new(Mark::new(tag), RULE, 0, tat));
    }

    pub(super) fn put_slot(&self, tag: u64, index: usize, slot: Slot) {
        assert!(self.model.pair(tag).home.0[index].replace(Slot::EMPTY, slot));
        let debt = if slot.is_reserved() { 0 } else { slot.tat().saturating_sub(NOW) };
        self.model.sums[tag as usize].charged.fetch_add(debt, Ordering::Relaxed);
    }

    /// Charges a tag that has a bucket or gets one.
    pub(super) fn update(&self, tag: u64, ticks: u64, hits: u64) {
        assert!(self.charge(Charge { hits, ..Charge::new(tag, ticks) }), "refused");
    }

    /// Charges a tag if its burst allows it.
    pub(super) fn charge(&self, charge: Charge) -> bool {
        loop {
            let Some((cell, old, displaced)) = self.model.find(charge.tag) else {
                match self.claim_slot(charge) {
                    Claim::Taken { .. } => return self.model.add_charge(charge),
                    Claim::Lost => continue,
                    Claim::Full => panic!("no slot is free"),
                }
            };
            let tat = old.tat().max(NOW) + charge.ticks;
            if tat > NOW + charge.burst {
                if cell.load() == old {
                    return false;
                }
                continue;
            }
            let pending = old.pending() + charge.hits;
            if Mutation::MarkFirst.is_active() {
                dirty::mark(&self.model.word, Model::bit(charge.tag, displaced));
            }
            if cell.replace(old, old.with(RULE, pending, tat)) {
                if pending > 0 {
                    self.model.mark(charge.tag, displaced);
                }
                return self.model.add_charge(charge);
            }
        }
    }

    /// Like `charge`, but the thread is killed when it tries one more swap than `swaps`.
    pub(super) fn charge_and_die(&self, swaps: usize, charge: Charge) {
        monitor::kill_after(swaps);
        if let Err(cause) = panic::catch_unwind(AssertUnwindSafe(|| self.charge(charge)))
            && !cause.is::<monitor::Killed>()
        {
            panic::resume_unwind(cause);
        }
    }

    /// Claims a slot as a thread does that found none, although the tag may have a bucket by now.
    pub(super) fn claim_late(&self, charge: Charge) {
        if matches!(self.claim_slot(charge), Claim::Taken { .. }) {
            self.model.add_charge(charge);
        }
    }

    /// Claims a slot for a tag that has none.
    fn claim_slot(&self, charge: Charge) -> Claim {
        let pair = self.model.pair(charge.tag);
        let new = Slot::new(Mark::new(charge.tag), RULE, charge.hits, NOW + charge.ticks);
        // The model's own token, because the narrow slot has no room for a token like core's.
        let token = self.token;
        let eviction_cost = |slot| eviction_cost(slot, charge.fresh);
        let on_replace = |slot| self.model.on_replace(slot);
        let claim = match Mutation::is_in_claim() {
            true => mutated_claim::claim(&pair, new, token, eviction_cost, on_replace),
            false => pair.claim(new, token, charge.evict, eviction_cost, on_replace),
        };
        if let Claim::Taken { displaced } = claim
            && charge.hits > 0
        {
            self.model.mark(charge.tag, displaced);
        }
        claim
    }

    /// Clears all slots without eviction cost, as core's `reclaim_rules` does.
    pub(super) fn clear(&self, fresh: u64) {
        for cell in self.model.lines.iter().flat_map(|line| &line.0) {
            line::clear(
                cell,
                |_| true,
                |slot| eviction_cost(slot, fresh),
                |slot| self.model.on_replace(slot),
            );
        }
    }

    /// Drains the marked lines, if their hits are due.
    pub(super) fn drain(&self, due: bool) {
        if Mutation::DrainFirst.is_active() {
            self.model.visit(u64::MAX, due);
            dirty::take_bits(&self.model.word);
        } else {
            self.model.visit(dirty::take_bits(&self.model.word), due);
        }
    }
}

impl Model {
    /// The home line of even tags is the first one, that of odd tags the second.
    fn pair(&self, tag: u64) -> Pair<'_> {
        let home = tag as usize % 2;
        let (home, second) = (&self.lines[home], &self.lines[1 - home]);
        Pair { home, second, mark: Mark::new(tag) }
    }

    fn find(&self, tag: u64) -> Option<(&Cell, Slot, bool)> {
        let pair = self.pair(tag);
        let mut home = pair.home.0.iter().map(|cell| (cell, cell.load(), false));
        match Mutation::ReservedIsFound.is_active() {
            true => home.find(|(_, slot, _)| slot.mark() == pair.mark && !slot.is_empty()),
            false => pair.find(),
        }
    }

    fn bit(tag: u64, displaced: bool) -> u64 {
        1 << ((tag + u64::from(displaced)) % 2)
    }

    fn mark(&self, tag: u64, displaced: bool) {
        if !Mutation::NoMark.is_active() && !Mutation::MarkFirst.is_active() {
            dirty::mark(&self.word, Model::bit(tag, displaced));
        }
    }

    fn visit(&self, bits: u64, due: bool) {
        for (i, line) in self.lines.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1) {
            let mut not_due = false;
            for cell in &line.0 {
                match dirty::drain_slot(cell, |_| due) {
                    SlotDrain::Nothing => {}
                    SlotDrain::NotDue => not_due = true,
                    SlotDrain::Taken(slot) => {
                        self.drained.fetch_add(slot.pending(), Ordering::Relaxed);
                    }
                }
            }
            if not_due && !Mutation::NoMarkAgain.is_active() {
                dirty::mark(&self.word, 1 << i);
            }
        }
    }

    fn add_charge(&self, charge: Charge) -> bool {
        self.sums[charge.tag as usize].charged.fetch_add(charge.ticks, Ordering::Relaxed);
        true
    }

    fn on_replace(&self, slot: Slot) {
        if slot.is_reserved() {
            return;
        }
        let sums = &self.sums[slot.mark().fingerprint_bits() as usize];
        sums.evicted.fetch_add(slot.tat().saturating_sub(NOW), Ordering::Relaxed);
        self.unreported.fetch_add(slot.pending(), Ordering::Relaxed);
    }

    /// The sum of all charges to a tag, including those that were evicted.
    pub(super) fn charged(&self, tag: u64) -> u64 {
        self.sums[tag as usize].charged.load(Ordering::Relaxed)
    }

    /// Asserts that every charge to a tag is in its bucket or was evicted.
    fn keeps_every_charge(&self) {
        for (tag, sums) in self.sums.iter().enumerate() {
            let evicted = sums.evicted.load(Ordering::Relaxed);
            let kept = sums.charged.load(Ordering::Relaxed).checked_sub(evicted);
            assert_eq!(Some(self.debt(tag as u64)), kept, "debt of {tag} in {:?}", self.slots());
        }
    }

    /// Asserts that a tag has this debt.
    pub(super) fn assert_debt(&self, tag: u64, ticks: u64) {
        assert_eq!(self.debt(tag), ticks, "debt of {tag} in {:?}", self.slots());
    }

    fn debt(&self, tag: u64) -> u64 {
        self.pair(tag).find().map_or(0, |(_, slot, _)| slot.tat().saturating_sub(NOW))
    }

    /// Number of hits that were drained, are pending, or were evicted. Asserts that lines with
    /// pending hits are marked.
    pub(super) fn hits(&self) -> u64 {
        let bits = self.word.load(Ordering::Relaxed);
        let mut sum =
            self.drained.load(Ordering::Relaxed) + self.unreported.load(Ordering::Relaxed);
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

fn eviction_cost(slot: Slot, fresh: u64) -> u64 {
    let debt = if slot.is_reserved() { 0 } else { slot.tat().saturating_sub(fresh) };
    let under_way = slot.is_reserved() && !slot.is_given_up();
    debt.max(u64::from(under_way || slot.pending() > 0))
}
