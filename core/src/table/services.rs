//! What the processes of a table know together about the services that they call: a bounded array
//! of small records, found by fingerprint. What the words mean is `busy/`'s.
//!
//! Every word is changed by itself, without locks: whoever is killed at any instruction leaves a
//! record that works. A fingerprint has eight places. When all are taken, the one worth least goes;
//! whoever still writes for the service before changes a few numbers of the new one, and its limit
//! recovers from that like from anything else.

use std::sync::atomic::Ordering;

use portable_atomic::AtomicU128;

use super::Table;
use super::cell::AtomicU64;

/// How many services are remembered.
pub(crate) const SERVICES: usize = 1024;
/// Places for one fingerprint.
const WAYS: usize = 8;

/// The record of one service. All zero bytes are a free one.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(crate) struct Service {
    /// What limits it, as one value.
    pub(crate) state: AtomicU128,
    /// Its fingerprint; zero: the place is free.
    mark: AtomicU64,
    /// When somebody last asked about it.
    pub(crate) used_ns: AtomicU64,
    /// Until when nothing may be sent.
    pub(crate) paused_ns: AtomicU64,
    /// When the next request has its turn.
    pub(crate) turn_ns: AtomicU64,
    /// How often requests are sent, and answers are good.
    pub(crate) sent: AtomicU64,
    pub(crate) good: AtomicU64,
}

impl Service {
    /// Forgets everything but whose it is. Relaxed: every word stands for itself.
    pub(crate) fn clear(&self) {
        self.state.store(0, Ordering::Relaxed);
        for word in [&self.paused_ns, &self.turn_ns, &self.sent, &self.good] {
            word.store(0, Ordering::Relaxed);
        }
    }

    fn is_free(&self) -> bool {
        self.mark.load(Ordering::Relaxed) == 0
    }

    fn words(&self) -> [&AtomicU64; 6] {
        let Service { mark, used_ns, paused_ns, turn_ns, sent, good, .. } = self;
        [mark, used_ns, paused_ns, turn_ns, sent, good]
    }
}

impl Table {
    /// The record of a fingerprint, if there is one.
    pub(crate) fn find_service(&self, fingerprint: u64) -> Option<&Service> {
        let mark = fingerprint.max(1);
        self.ways(mark).iter().find(|service| service.mark.load(Ordering::Relaxed) == mark)
    }

    /// The record of a fingerprint, which gets the place worth least if it has none; and whether
    /// somebody had to be forgotten for it. `worth` says what a record is worth; at zero nothing
    /// is lost.
    pub(crate) fn take_service(
        &self,
        fingerprint: u64,
        worth: impl Fn(&Service) -> u64,
    ) -> (&Service, bool) {
        let mark = fingerprint.max(1);
        loop {
            if let Some(service) = self.find_service(mark) {
                return (service, false);
            }
            let price = |service: &Service| if service.is_free() { 0 } else { worth(service) };
            let ways = self.ways(mark);
            let cheapest = (1..ways.len()).fold((0, price(&ways[0])), |(best, least), way| {
                let price = price(&ways[way]);
                if price < least { (way, price) } else { (best, least) }
            });
            let (way, price) = cheapest;
            let service = &ways[way];
            let old = service.mark.load(Ordering::Relaxed);
            // Relaxed: every word stands for itself.
            if service
                .mark
                .compare_exchange(old, mark, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
            {
                service.clear();
                return (service, price > 0);
            }
        }
    }

    /// All records that are taken.
    pub(crate) fn services(&self) -> impl Iterator<Item = &Service> {
        self.region.services().iter().filter(|service| !service.is_free())
    }

    /// Takes over what another table knows.
    pub(super) fn copy_services_from(&self, old: &Table) {
        for (new, old) in self.region.services().iter().zip(old.region.services()) {
            // Relaxed: nobody else sees the new table yet.
            new.state.store(old.state.load(Ordering::Relaxed), Ordering::Relaxed);
            for (new, old) in new.words().into_iter().zip(old.words()) {
                new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }

    fn ways(&self, mark: u64) -> &[Service] {
        let sets = SERVICES / WAYS;
        let set = ((u128::from(mark) * sets as u128) >> 64) as usize;
        &self.region.services()[set * WAYS..][..WAYS]
    }
}

const _: () = {
    assert!(size_of::<Service>() == 64);
    assert!(SERVICES.is_multiple_of(WAYS));
};
