//! Pending hits: units admitted here and not yet reported to peers. Also whether the table is
//! exchanged with peers at all.

use std::sync::atomic::Ordering;

use super::region::Region;
use super::slot::{MAX_PENDING, Slot};
use super::{Key, Table, dirty};
use crate::limit::bucket::Scale;

/// If no process has run the exchange for this long, pending hits no longer protect their slot.
const EXCHANGER_GONE_NS: u64 = 15_000_000_000;

/// The pending hits of a slot after a step.
#[derive(Clone, Copy)]
pub(super) struct Pending {
    pub(super) stored: u64,
    /// Hits that do not fit into the slot.
    overflow: u64,
}

impl Table {
    /// The hits pending in a slot, in the quantum of `scale`.
    #[inline]
    pub(super) fn pending_of(&self, slot: Slot, key: Key, scale: &Scale) -> u64 {
        match slot.rule() == key.rule {
            true => slot.pending(),
            // Rounded to the nearest.
            false => {
                let units = slot.pending() * self.quantum_of(slot);
                ((units + scale.quantum() / 2) / scale.quantum()).min(MAX_PENDING)
            }
        }
    }

    /// Units in one hit of a slot.
    pub(super) fn quantum_of(&self, slot: Slot) -> u64 {
        self.scale_of(slot).map_or(1, |scale| scale.quantum())
    }

    /// Adds `hits` to the pending hits of a slot. Only hits of an exchanged table are counted.
    #[inline]
    pub(super) fn pending_after(&self, before: u64, hits: i64, now: u64) -> Pending {
        if hits <= 0 {
            return Pending { stored: before.saturating_sub(hits.unsigned_abs()), overflow: 0 };
        }
        if !self.is_exchanged(now) {
            return Pending { stored: before, overflow: 0 };
        }
        let sum = before.saturating_add(hits.unsigned_abs());
        let stored = sum.min(MAX_PENDING);
        Pending { stored, overflow: sum - stored }
    }

    /// Called after a slot was changed: marks its line as dirty, and counts the units that were not
    /// stored.
    #[inline]
    pub(super) fn record_pending(&self, pending: Pending, scale: &Scale, line: usize) {
        if pending.stored > 0 {
            self.mark_dirty(line);
        }
        self.unreported.add(pending.overflow.saturating_mul(scale.quantum()));
    }

    /// Returns true if no process ever exchanged this table.
    #[inline]
    pub(crate) fn was_never_exchanged(&self) -> bool {
        // Relaxed: as in `is_exchanged`.
        self.region.header().exchanged_ns.load(Ordering::Relaxed) == 0
    }

    /// Returns true if a process currently exchanges this table.
    #[inline]
    pub(crate) fn is_exchanged(&self, now: u64) -> bool {
        // Relaxed: the value may be slightly out of date.
        match self.region.header().exchanged_ns.load(Ordering::Relaxed) {
            0 => false,
            at => now.saturating_sub(at) < EXCHANGER_GONE_NS,
        }
    }

    /// How much later than its time a check may pass, in nanoseconds. 0 if the table is not
    /// exchanged or no slack is set, because then no peer reports late.
    #[inline]
    pub(crate) fn tolerance(&self, own_ns: u64, slack: bool, now: u64) -> u64 {
        let slack_ns = self.slack();
        if slack_ns == 0 || !self.is_exchanged(now) {
            return 0;
        }
        own_ns.saturating_add(if slack { slack_ns } else { 0 })
    }

    /// Time since the exchange last called `set_exchanged`, in nanoseconds. `None` if it never did.
    pub(crate) fn since_exchange(&self, now: u64) -> Option<u64> {
        match self.region.header().exchanged_ns.load(Ordering::Relaxed) {
            0 => None,
            at => Some(now.saturating_sub(at)),
        }
    }

    /// Records that a process exchanges this table at the time `now`.
    pub(crate) fn set_exchanged(&self, now: u64) {
        self.region.header().exchanged_ns.store(now.max(1), Ordering::Relaxed);
    }

    /// The slack in nanoseconds.
    pub(crate) fn slack(&self) -> u64 {
        self.region.header().slack_ns.load(Ordering::Relaxed)
    }

    /// Sets the slack: how much later than their time checks may pass because reports are under
    /// way, in nanoseconds.
    pub(crate) fn set_slack(&self, ns: u64) {
        self.region.header().slack_ns.store(ns, Ordering::Relaxed);
    }

    pub(super) fn mark_dirty(&self, line: usize) {
        let (word, bit) = Region::bit_of(line);
        dirty::mark(&self.region.dirty()[word], bit);
    }
}
