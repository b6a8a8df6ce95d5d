//! What the processes of a table know together about the services that they call: a bounded array
//! of small records, found by fingerprint. What the words mean is `busy/`'s.
//!
//! Every word is changed by itself, without locks: whoever is killed at any instruction leaves a
//! record that works. A service has eight places. When all are taken, the one worth least goes;
//! whoever still writes for the service before changes a few numbers of the new one, and its limit
//! recovers from that like from anything else.
//!
//! Where there can be peers, every place has room for what they are told of the service, and what
//! they told: `news.rs`.

use std::ops::Range;
use std::sync::atomic::Ordering;

use portable_atomic::AtomicU128;

use super::Table;
use super::cell::AtomicU64;
use super::news::Board;

/// How many services are remembered.
pub(crate) const SERVICES: usize = 1024;
/// Places for one service.
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
}

impl Service {
    /// Forgets everything but whose it is. Relaxed: every word stands for itself.
    pub(crate) fn clear(&self) {
        self.state.store(0, Ordering::Relaxed);
        for word in [&self.paused_ns, &self.turn_ns, &self.sent, &self.good] {
            word.store(0, Ordering::Relaxed);
        }
    }

    fn words(&self) -> [&AtomicU64; 6] {
        let Service { mark, used_ns, paused_ns, turn_ns, sent, good, .. } = self;
        [mark, used_ns, paused_ns, turn_ns, sent, good]
    }
}

/// A place for a service.
#[derive(Clone, Copy)]
pub(crate) struct ServicePlace<'a> {
    pub(crate) service: &'a Service,
    /// Nothing: there are no peers.
    pub(super) board: Option<&'a Board>,
}

impl<'a> ServicePlace<'a> {
    pub(super) fn mark(self) -> u64 {
        self.service.mark.load(Ordering::Relaxed)
    }

    pub(super) fn is_free(self) -> bool {
        self.mark() == 0
    }

    /// Whether all that is known of the service is what peers said.
    pub(super) fn is_hearsay(self) -> bool {
        let mark = self.mark();
        mark != 0 && self.board.is_some_and(|board| mark == board.name().max(1))
    }

    /// Gives the place to another, unless somebody was faster.
    pub(super) fn claim(self, old: u64, mark: u64, name: u64, keeps_news: bool) -> bool {
        let service = self.service;
        // Relaxed: every word stands for itself.
        let claimed =
            service.mark.compare_exchange(old, mark, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if claimed {
            service.clear();
            service.used_ns.store(0, Ordering::Relaxed);
            if let Some(board) = self.board {
                board.begin(name, keeps_news);
            }
        }
        claimed
    }

    /// Its own, but only as hearsay.
    fn is_hearsay_of(self, name: u64) -> bool {
        self.mark() == name.max(1) && self.is_hearsay()
    }
}

impl Table {
    /// The place of a service, if it has one.
    pub(crate) fn find_service(&self, key: ServiceKey) -> Option<ServicePlace<'_>> {
        let mark = key.mark();
        self.ways(key.name).find(|place| place.mark() == mark)
    }

    /// The place of a service, which gets the one worth least if it has none; and whether somebody
    /// had to be forgotten for it. `worth` says what a record is worth; at zero nothing is lost.
    /// What is only hearsay is worth nothing.
    pub(crate) fn take_service(
        &self,
        key: ServiceKey,
        worth: impl Fn(ServicePlace<'_>) -> u64,
    ) -> (ServicePlace<'_>, bool) {
        loop {
            if let Some(place) = self.find_service(key) {
                return (place, false);
            }
            let hearsay = self.ways(key.name).find(|place| place.is_hearsay_of(key.name));
            let (price, place) = hearsay.map_or_else(
                || {
                    let priced = self.ways(key.name).map(|place| {
                        let is_nothing = place.is_free() || place.is_hearsay();
                        (if is_nothing { 0 } else { worth(place) }, place)
                    });
                    // The first of equal ones.
                    let cheapest = priced.reduce(|a, b| if b.0 < a.0 { b } else { a });
                    cheapest.unwrap_or((0, self.service_at(0)))
                },
                |place| (0, place),
            );
            if place.claim(place.mark(), key.mark(), key.name, hearsay.is_some()) {
                return (place, price > 0);
            }
        }
    }

    /// The places of all services that somebody here asked about.
    pub(crate) fn services(&self) -> impl Iterator<Item = ServicePlace<'_>> {
        let all = (0..SERVICES).map(|index| self.service_at(index));
        all.filter(|place| !place.is_free() && !place.is_hearsay())
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
        for (new, old) in self.region.boards().iter().zip(old.region.boards()) {
            new.begin(old.name(), false);
        }
    }

    pub(super) fn service_at(&self, index: usize) -> ServicePlace<'_> {
        ServicePlace {
            service: &self.region.services()[index],
            board: self.region.boards().get(index),
        }
    }

    /// The places of a service, whatever the settings.
    pub(super) fn ways(&self, name: u64) -> impl Iterator<Item = ServicePlace<'_>> {
        places(name).map(|index| self.service_at(index))
    }
}

fn places(name: u64) -> Range<usize> {
    let sets = SERVICES / WAYS;
    let set = ((u128::from(name) * sets as u128) >> 64) as usize;
    set * WAYS..(set + 1) * WAYS
}

const _: () = {
    assert!(size_of::<Service>() == 64);
    assert!(SERVICES.is_multiple_of(WAYS));
};
