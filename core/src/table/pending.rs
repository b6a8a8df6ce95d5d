//! Hits that peers have yet to hear of: how many a slot keeps, and what follows from there being
//! an exchange at all.

use std::sync::atomic::Ordering;

use super::region::Region;
use super::slot::{MAX_PENDING, Slot};
use super::{Key, Table, dirty};
use crate::limit::bucket::Scale;

/// With no exchanger for so long, hits that wait for one no longer keep their slot.
const EXCHANGER_GONE_NS: u64 = 15_000_000_000;

/// Hits of a slot that peers have yet to hear of.
#[derive(Clone, Copy)]
pub(super) struct Pending {
    pub(super) stored: u64,
    /// Those for which there is no room.
    overflow: u64,
}

impl Table {
    /// The hits pending in a slot, as the rule counts them that is asked about.
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

    /// Units to a hit of a slot.
    pub(super) fn quantum_of(&self, slot: Slot) -> u64 {
        self.scale_of(slot).map_or(1, |scale| scale.quantum())
    }

    /// Hits pending after so many more.
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

    /// After a slot was changed: its hits are there to be drained.
    #[inline]
    pub(super) fn record_pending(&self, pending: Pending, scale: &Scale, line: usize) {
        if pending.stored > 0 {
            self.mark_dirty(line);
        }
        self.unreported.add(pending.overflow.saturating_mul(scale.quantum()));
    }

    /// Whether nobody has ever reported to peers.
    #[inline]
    pub(crate) fn was_never_exchanged(&self) -> bool {
        // Relaxed: as below.
        self.region.header().exchanged_ns.load(Ordering::Relaxed) == 0
    }

    /// Whether somebody reports to peers.
    #[inline]
    pub(crate) fn is_exchanged(&self, now: u64) -> bool {
        // Relaxed: a moment sooner or later does not matter.
        match self.region.header().exchanged_ns.load(Ordering::Relaxed) {
            0 => false,
            at => now.saturating_sub(at) < EXCHANGER_GONE_NS,
        }
    }

    /// How much later than its time a check may pass. Without peers there is no slack, and nobody
    /// to be tolerant for.
    #[inline]
    pub(crate) fn tolerance(&self, own_ns: u64, slack: bool, now: u64) -> u64 {
        let slack_ns = self.slack();
        if slack_ns == 0 || !self.is_exchanged(now) {
            return 0;
        }
        own_ns.saturating_add(if slack { slack_ns } else { 0 })
    }

    /// How long ago somebody last said so; nothing: never.
    pub(crate) fn since_exchange(&self, now: u64) -> Option<u64> {
        match self.region.header().exchanged_ns.load(Ordering::Relaxed) {
            0 => None,
            at => Some(now.saturating_sub(at)),
        }
    }

    /// Says that somebody reports to peers, from now on for a while.
    pub(crate) fn set_exchanged(&self, now: u64) {
        self.region.header().exchanged_ns.store(now.max(1), Ordering::Relaxed);
    }

    /// The slack that `set_slack` wrote.
    pub(crate) fn slack(&self) -> u64 {
        self.region.header().slack_ns.load(Ordering::Relaxed)
    }

    /// Says how much later than their time checks may pass, because of the way to the peers.
    pub(crate) fn set_slack(&self, ns: u64) {
        self.region.header().slack_ns.store(ns, Ordering::Relaxed);
    }

    pub(super) fn mark_dirty(&self, line: usize) {
        let (word, bit) = Region::bit_of(line);
        dirty::mark(&self.region.dirty()[word], bit);
    }
}
