//! What the processes of a table know together about the services that they call: a bounded array
//! of small records (`service.rs`), in sets of a few (`set.rs`).

use std::sync::atomic::Ordering;

use super::Table;
use super::cell::WAYS;
use super::news::News;
use super::service::{Moment, Service, ServiceKey};
use super::set::{self, Set};

/// How many services are remembered.
pub(crate) const SERVICES: usize = 1024;
/// How long the wish to exchange busy answers holds without being repeated.
const WISH_NS: u64 = 2_000_000_000;

impl Table {
    /// The place of a service, if it has one.
    pub(crate) fn find_service(&self, key: ServiceKey) -> Option<&Service> {
        set::find(self.set(key.name()), key)
    }

    /// The place of a service, which gets the one worth least if it has none; and what that was
    /// worth to whom it belonged, zero if nothing. `worth` says what a record in use is worth.
    pub(crate) fn take_service(
        &self,
        key: ServiceKey,
        now: u64,
        worth: impl Fn(&Service) -> u64,
    ) -> (&Service, u64) {
        set::take(self.set(key.name()), key, || self.moment(now), worth)
    }

    /// The places of all services that somebody here asked about.
    pub(crate) fn services(&self) -> impl Iterator<Item = &Service> {
        self.region.services().iter().filter(|service| service.key().is_asked())
    }

    /// Notes what peers shall hear of a service, whose place this is.
    pub(crate) fn say(&self, service: &Service, key: ServiceKey, news: News) {
        service.say(key.name(), news);
        // Release: who sees this sees the news. Not a store, which loom cannot put in order with the
        // exchanger's change.
        self.region.header().busy_said.swap(1, Ordering::Release);
    }

    /// Takes what peers shall hear, of so many services at most, the first of them at `from`; the
    /// rest is left for the next time. The next place to begin at.
    pub(crate) fn take_said(
        &self,
        from: usize,
        most: usize,
        mut out: impl FnMut(u64, News),
    ) -> usize {
        let said = &self.region.header().busy_said;
        if said.load(Ordering::Relaxed) == 0 {
            return from;
        }
        // Before the look, which Acquire keeps behind it: what is said from here on is said again.
        said.swap(0, Ordering::Acquire);
        let mut taken = 0;
        for step in 0..SERVICES {
            let index = (from + step) % SERVICES;
            if taken == most {
                // A change, not a store, so that what others said before is still seen with it.
                said.fetch_or(1, Ordering::Relaxed);
                return index;
            }
            if let Some((name, news)) = self.region.services()[index].take_said() {
                taken += 1;
                out(name, news);
            }
        }
        from
    }

    /// Notes what a peer said of a service. Whether somebody here may want to know.
    pub(crate) fn hear(&self, name: u64, now: u64, news: News) -> bool {
        set::hear(self.set(name), name, || self.moment(now), news)
    }

    /// Forgets a service that is counted by these settings, and what peers said of it.
    pub(crate) fn forget_service(&self, key: ServiceKey) {
        set::unhear(self.set(key.name()), key.name());
        if let Some(service) = self.find_service(key) {
            service.forget(key);
        }
    }

    /// Says that busy answers shall be exchanged, for as long as somebody goes on saying so.
    pub(crate) fn wish_busy(&self, now: u64) {
        self.region.header().busy_wished_ns.store(now.max(1), Ordering::Relaxed);
    }

    /// Whether somebody says so.
    pub(crate) fn is_busy_wished(&self, now: u64) -> bool {
        let wished = self.region.header().busy_wished_ns.load(Ordering::Relaxed);
        // Not one of another time either, which might be long in coming.
        wished != 0 && now.abs_diff(wished) < WISH_NS
    }

    /// Takes over what another table knows.
    pub(super) fn copy_services_from(&self, old: &Table) {
        for (new, old) in self.region.services().iter().zip(old.region.services()) {
            new.copy_from(old);
        }
    }

    pub(super) fn moment(&self, now: u64) -> Moment {
        Moment::new(now, &self.region.header().claims)
    }

    fn set(&self, name: u64) -> &Set {
        let sets = self.region.services().as_chunks().0;
        &sets[((u128::from(name) * sets.len() as u128) >> 64) as usize]
    }
}

const _: () = {
    assert!(size_of::<Service>() == 128);
    assert!(SERVICES.is_multiple_of(WAYS));
};
