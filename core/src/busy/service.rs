//! The record of one service, and how it passes from one service to another. `set.rs` chooses the
//! record, `record.rs` defines what the words mean, `report.rs` the two words of reports.
//!
//! The owner of a record is one 128-bit key, changed by one compare-and-swap. After a change the
//! key has a token until the old owner's words are wiped. Any process that finds a token may do
//! that, because the process that took the record may be dead; so no process waits for another, and
//! every failed compare-and-swap means that another one succeeded. Words are wiped one by one, each
//! only while the key still has that token, so a late wipe removes nothing new. After a process has
//! written the state or the pause of a service, it checks the owner again, and undoes its change if
//! the owner has changed. The other words are not protected: a late write changes a few numbers of
//! the new owner, from which its limit recovers.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use super::cell::{AtomicU64, AtomicU128, full_fence};
use super::report::{BusyReport, PendingBusyReport};

/// A service without local calls for this time is forgotten, unless it asked for a longer pause. A
/// timestamp further in the future than this was written with another clock, because no process is
/// suspended for that long between reading the clock and writing.
pub(crate) const IDLE_NS: u64 = 60_000_000_000;

/// The owner of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServiceKey {
    /// The fingerprint of the service's name, the same on all nodes of a cluster.
    name: u64,
    /// Hash of the settings by which the limit is computed. Zero if there were no local calls and
    /// only peers reported the service.
    settings: u32,
    /// Not zero while the record may contain words of an earlier owner. Different for every claim,
    /// so that cleaning the record after one claim does not mark it as clean for the next.
    token: u32,
}

impl ServiceKey {
    const FREE: ServiceKey = ServiceKey { name: 0, settings: 0, token: 0 };

    pub(crate) fn new(name: u64, settings: u64) -> ServiceKey {
        ServiceKey { name: name.max(1), settings: (settings as u32).max(1), token: 0 }
    }

    /// The key of a service that only peers reported.
    pub(super) fn remote_only(name: u64) -> ServiceKey {
        ServiceKey { name: name.max(1), settings: 0, token: 0 }
    }

    pub(super) fn is_clean(self) -> bool {
        self.token == 0
    }

    fn cleaned(self) -> ServiceKey {
        ServiceKey { token: 0, ..self }
    }

    pub(crate) fn name(self) -> u64 {
        self.name
    }

    /// Returns true if there were local calls about the service.
    pub(super) fn is_local(self) -> bool {
        self.name != 0 && self.settings != 0
    }

    fn to_bits(self) -> u128 {
        let rest = u64::from(self.token) << TOKEN_SHIFT | u64::from(self.settings);
        u128::from(self.name) << 64 | u128::from(rest)
    }

    fn from_bits(bits: u128) -> ServiceKey {
        let rest = bits as u64;
        let (token, settings) = ((rest >> TOKEN_SHIFT) as u32, rest as u32);
        ServiceKey { name: (bits >> 64) as u64, settings, token }
    }
}

const TOKEN_SHIFT: u32 = 32;

/// The record of one service. Zero bytes are a free record.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(crate) struct Service {
    key: AtomicU128,
    /// The state from which the limit is computed, as one value.
    pub(crate) state: AtomicU128,
    /// Busy responses to broadcast.
    local: PendingBusyReport,
    /// Busy responses that peers reported.
    pub(super) remote: PendingBusyReport,
    /// Time of the last local call; zero if the service was forgotten or never called.
    pub(crate) used_ns: AtomicU64,
    /// No request may be sent before this time.
    pub(crate) paused_ns: AtomicU64,
    /// When the next request may be sent.
    pub(crate) turn_ns: AtomicU64,
    /// Meters of requests sent and of good responses.
    pub(crate) sent: AtomicU64,
    pub(crate) good: AtomicU64,
}

/// Time and token of a claim.
#[derive(Clone, Copy)]
pub(super) struct ClaimStamp {
    pub(super) now: u64,
    token: u32,
}

impl ClaimStamp {
    /// Creates a stamp with a token that is unique and not zero, from the number of claims so far.
    pub(super) fn new(now: u64, claims: &AtomicU64) -> ClaimStamp {
        // Relaxed: only the number matters.
        let number = claims.fetch_add(1, Ordering::Relaxed);
        ClaimStamp { now, token: (number % u64::from(u32::MAX)) as u32 + 1 }
    }

    #[cfg(test)]
    pub(super) fn token(self) -> u32 {
        self.token
    }
}

/// The cost of giving a record to another service, in increasing order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EvictionCost {
    /// The record belongs to the same service, which only peers have reported so far.
    SameRemote,
    Free,
    /// The owner has been idle since this time.
    Idle(u64),
    /// Only peers have reported the owner, last at this time.
    RemoteOnly(u64),
    /// The owner is in use; how valuable its record is.
    InUse(u64),
}

impl Service {
    /// Returns the owner.
    pub(super) fn key(&self) -> ServiceKey {
        // Acquire: a process that finds its service finds the record clean.
        ServiceKey::from_bits(self.key.load(Ordering::Acquire))
    }

    /// Clears everything except the key and the reports while `holds` returns true. Later values
    /// are not cleared.
    pub(crate) fn wipe(&self, holds: impl Fn() -> bool) {
        // Acquire: pairs with the fence in `step`. A process that sees a written word also sees the
        // change after which `holds` returns false.
        let (done, seen) = (Ordering::Relaxed, Ordering::Acquire);
        let _ = self.state.fetch_update(done, seen, |bits| (bits != 0 && holds()).then_some(0));
        for word in [&self.paused_ns, &self.turn_ns, &self.sent, &self.good] {
            let _ = word.fetch_update(done, seen, |bits| (bits != 0 && holds()).then_some(0));
        }
    }

    /// Gives the record to another service. Returns false if the owner has changed meanwhile. A
    /// report from peers is kept if it is about the new owner.
    pub(super) fn claim(&self, old: ServiceKey, new: ServiceKey, stamp: ClaimStamp) -> bool {
        if old == ServiceKey::FREE || old == ServiceKey::remote_only(new.name) {
            if new.is_local() {
                // Done first, because otherwise another process could consider the record idle.
                self.mark_used(stamp.now);
            }
            return self.change_key(old, new);
        }
        let held = ServiceKey { token: stamp.token, ..new };
        let taken = self.change_key(old, held);
        if taken {
            self.clean(held, stamp.now);
        }
        taken
    }

    /// Wipes the words of the earlier owner, if there may be any.
    pub(super) fn clean(&self, held: ServiceKey, now: u64) {
        if held.is_clean() {
            return;
        }
        // A process that still writes for the earlier owner sees the new key, or this thread sees
        // what it wrote. A process that sees any of the changes below sees the new key, too
        // (`set.rs`).
        full_fence();
        let holds = || self.key() == held;
        self.wipe(holds);
        self.local.wipe(holds);
        self.remote.wipe(holds);
        if held.is_local() {
            let used = |_| holds().then_some(now.max(1));
            let _ = self.used_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, used);
        }
        self.change_key(held, held.cleaned());
    }

    /// Forgets a service, if it is still the owner.
    pub(crate) fn forget(&self, key: ServiceKey) {
        self.remote.take(|| key.name);
        self.wipe(|| self.key() == key);
        // Marks the record as idle.
        let holds = |_| (self.key() == key).then_some(0);
        let _ = self.used_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, holds);
    }

    /// Notes a local call. An idle record is reset.
    pub(crate) fn touch(&self, now: u64, is_idle: impl Fn() -> bool) {
        if is_idle() {
            // If two processes do this at the same time, the later one does not clear what the
            // other has written since.
            self.wipe(is_idle);
        }
        self.mark_used(now);
    }

    pub(super) fn mark_used(&self, now: u64) {
        self.used_ns.store(now.max(1), Ordering::Relaxed);
    }

    /// Returns true if the last local call was long ago, or was made with another clock.
    pub(crate) fn is_unused(&self, now: u64) -> bool {
        let used = self.used_ns.load(Ordering::Relaxed);
        used == 0 || now.abs_diff(used) > IDLE_NS
    }

    fn change_key(&self, old: ServiceKey, new: ServiceKey) -> bool {
        let (old, new) = (old.to_bits(), new.to_bits());
        // Release: see `key`. Acquire: nothing is wiped before the record is taken.
        self.key.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Changes the state of the service that owned this record a moment ago. If the owner has
    /// changed meanwhile, the changes are undone.
    pub(crate) fn step<R>(&self, key: ServiceKey, write: impl FnOnce(&Writer<'_>) -> R) -> R {
        let writer = Writer::new(self);
        // A process that sees a written word also sees the owner's key: see `wipe`.
        full_fence();
        let answer = write(&writer);
        // Pairs with the fence in `clean`.
        full_fence();
        if self.key() != key {
            writer.undo();
        }
        answer
    }

    /// Returns the eviction cost if this is the owner. `None` if the owner is in use.
    pub(super) fn cost_unless_used(&self, key: ServiceKey, now: u64) -> Option<EvictionCost> {
        match key {
            ServiceKey::FREE => Some(EvictionCost::Free),
            // No process writes such a key, but memory may contain anything.
            ServiceKey { name: 0, .. } => Some(EvictionCost::Idle(0)),
            ServiceKey { name, settings: 0, .. } => {
                Some(EvictionCost::RemoteOnly(self.remote.at_ns(name)))
            }
            _ => {
                let used = self.used_ns.load(Ordering::Relaxed);
                // A pause written with another clock does not keep the record.
                let is_ahead = used > now.saturating_add(IDLE_NS);
                let is_paused = self.paused_ns.load(Ordering::Relaxed) > now && !is_ahead;
                (self.is_unused(now) && !is_paused).then_some(EvictionCost::Idle(used))
            }
        }
    }

    /// Adds a busy response to broadcast. The caller has found the record to belong to the service.
    pub(super) fn add_local_busy(&self, name: u64, report: BusyReport) {
        self.local.add(name, report);
    }

    /// Takes the busy responses to broadcast, and the name of their service.
    pub(super) fn take_local_busy(&self) -> Option<(u64, BusyReport)> {
        let mut key = ServiceKey::FREE;
        let report = self.local.take(|| {
            // Read after the report was taken, because the process that added it had found the
            // record to belong to its service.
            key = self.key();
            key.name
        })?;
        // No report is added to a record that is free or not clean.
        (key.name != 0 && key.is_clean()).then_some((key.name, report))
    }

    /// Takes the reports of peers about the record's owner.
    #[inline]
    pub(crate) fn take_remote_busy(&self, name: u64) -> Option<BusyReport> {
        self.remote.take(|| name)
    }

    /// Leaves the record in the state of a process that was killed immediately after it took the
    /// record.
    #[cfg(test)]
    pub(super) fn abandon(&self, key: ServiceKey, token: u32) {
        self.key.store(ServiceKey { token, ..key }.to_bits(), Ordering::Relaxed);
    }
}

/// Changes the state and pause of a service, and remembers the changes so that they can be undone.
pub(crate) struct Writer<'a> {
    service: &'a Service,
    state: Cell<Option<u128>>,
    paused_ns: Cell<Option<u64>>,
}

// Relaxed: each word is independent of the others.
impl<'a> Writer<'a> {
    pub(crate) fn new(service: &'a Service) -> Writer<'a> {
        Writer { service, state: Cell::new(None), paused_ns: Cell::new(None) }
    }

    /// Changes the state in one step, unless `next` returns `None`. Returns whether it did.
    pub(crate) fn change(&self, mut next: impl FnMut(u128) -> Option<u128>) -> bool {
        let mut new = None;
        let next = |bits| {
            new = next(bits);
            new
        };
        let order = Ordering::Relaxed;
        let changed = self.service.state.fetch_update(order, order, next).is_ok();
        if changed {
            self.state.set(new);
        }
        changed
    }

    /// Changes the end of the pause.
    pub(crate) fn pause(&self, until: impl Fn(u64) -> u64) {
        let order = Ordering::Relaxed;
        let next = |before| Some(until(before)).filter(|after| *after != before);
        if let Ok(before) = self.service.paused_ns.fetch_update(order, order, next) {
            self.paused_ns.set(Some(until(before)));
        }
    }

    /// Clears the written words, unless another process has changed them since.
    #[cold]
    fn undo(&self) {
        let order = Ordering::Relaxed;
        if let Some(state) = self.state.get() {
            let _ = self.service.state.compare_exchange(state, 0, order, order);
        }
        if let Some(until) = self.paused_ns.get() {
            let _ = self.service.paused_ns.compare_exchange(until, 0, order, order);
        }
    }
}
