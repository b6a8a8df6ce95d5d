//! What the processes of a table know together about the services that they call: a bounded array
//! of small records, found by fingerprint. What the words mean is `busy/`'s.
//!
//! Every word is changed by itself, without locks: whoever is killed at any instruction leaves a
//! record that works. A service has eight places. When all are taken, the one worth least goes;
//! whoever still writes for the service before changes a few numbers of the new one, and its limit
//! recovers from that like from anything else.
//!
//! The second half of a record is what peers are told of the service, and what they told: `news.rs`.

use std::sync::atomic::Ordering;

use portable_atomic::AtomicU128;

use super::Table;
use super::cell::AtomicU64;
use super::news::Word;

/// How many services are remembered.
pub(crate) const SERVICES: usize = 1024;
/// Places for one fingerprint.
const WAYS: usize = 8;

/// Whose record it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServiceKey {
    /// The fingerprint of the service: the same on all nodes of a cluster.
    pub(crate) name: u64,
    /// Stands for the settings by which its limit is counted; never zero, which is nobody's.
    pub(crate) settings: u64,
}

impl ServiceKey {
    fn mark(self) -> u64 {
        (self.name ^ self.settings).max(1)
    }
}

/// The record of one service. All zero bytes are a free one.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(crate) struct Service {
    /// What limits it, as one value.
    pub(crate) state: AtomicU128,
    /// Its name and settings in one; zero: the place is free; the name alone: nobody here asked
    /// about it, and all that is known is what peers said.
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
    pub(super) name: AtomicU64,
    pub(super) said: Word,
    pub(super) heard: Word,
}

impl Service {
    /// Forgets everything but whose it is. Relaxed: every word stands for itself.
    pub(crate) fn clear(&self) {
        self.state.store(0, Ordering::Relaxed);
        for word in [&self.paused_ns, &self.turn_ns, &self.sent, &self.good] {
            word.store(0, Ordering::Relaxed);
        }
    }

    pub(super) fn is_free(&self) -> bool {
        self.mark.load(Ordering::Relaxed) == 0
    }

    /// Whether all that is known of it is what peers said.
    pub(crate) fn is_hearsay(&self) -> bool {
        let mark = self.mark.load(Ordering::Relaxed);
        mark != 0 && mark == self.name.load(Ordering::Relaxed).max(1)
    }

    /// Gives the place to another, unless somebody was faster.
    pub(super) fn claim(&self, old: u64, mark: u64, name: u64, keeps_news: bool) -> bool {
        // Relaxed: every word stands for itself.
        let claimed =
            self.mark.compare_exchange(old, mark, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if claimed {
            self.clear();
            self.used_ns.store(0, Ordering::Relaxed);
            self.name.store(name, Ordering::Relaxed);
            if !keeps_news {
                self.said.take();
                self.heard.take();
            }
        }
        claimed
    }

    pub(super) fn mark(&self) -> u64 {
        self.mark.load(Ordering::Relaxed)
    }

    fn words(&self) -> [&AtomicU64; 7] {
        let Service { mark, used_ns, paused_ns, turn_ns, sent, good, name, .. } = self;
        [mark, used_ns, paused_ns, turn_ns, sent, good, name]
    }
}

impl Table {
    /// The record of a service, if there is one.
    pub(crate) fn find_service(&self, key: ServiceKey) -> Option<&Service> {
        let mark = key.mark();
        self.ways(key.name).iter().find(|service| service.mark() == mark)
    }

    /// The record of a service, which gets the place worth least if it has none; and whether
    /// somebody had to be forgotten for it. `worth` says what a record is worth; at zero nothing
    /// is lost. What is only hearsay is worth nothing.
    pub(crate) fn take_service(
        &self,
        key: ServiceKey,
        worth: impl Fn(&Service) -> u64,
    ) -> (&Service, bool) {
        loop {
            if let Some(service) = self.find_service(key) {
                return (service, false);
            }
            let ways = self.ways(key.name);
            let is_own = |service: &Service| service.mark() == key.name.max(1);
            if let Some(hearsay) = ways.iter().find(|service| is_own(service)) {
                if hearsay.claim(key.name.max(1), key.mark(), key.name, true) {
                    return (hearsay, false);
                }
                continue;
            }
            let price = |service: &Service| match service.is_free() || service.is_hearsay() {
                true => 0,
                false => worth(service),
            };
            let cheapest = (1..ways.len()).fold((0, price(&ways[0])), |(best, least), way| {
                let price = price(&ways[way]);
                if price < least { (way, price) } else { (best, least) }
            });
            let (way, price) = cheapest;
            let service = &ways[way];
            if service.claim(service.mark(), key.mark(), key.name, false) {
                return (service, price > 0);
            }
        }
    }

    /// All records of services that somebody here asked about.
    pub(crate) fn services(&self) -> impl Iterator<Item = &Service> {
        let all = self.region.services().iter();
        all.filter(|service| !service.is_free() && !service.is_hearsay())
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

    /// The places of a service, whatever the settings.
    pub(super) fn ways(&self, name: u64) -> &[Service] {
        let sets = SERVICES / WAYS;
        let set = ((u128::from(name) * sets as u128) >> 64) as usize;
        &self.region.services()[set * WAYS..][..WAYS]
    }
}

const _: () = {
    assert!(size_of::<Service>() == 128);
    assert!(SERVICES.is_multiple_of(WAYS));
};
