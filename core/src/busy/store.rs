//! The records of services in a region, which several processes may share.

use std::sync::atomic::Ordering;

use super::region::{BusyRegion, SERVICES};
use super::report::BusyReport;
use super::service::{ClaimStamp, Service, ServiceKey};
use super::set;
use crate::clock::TableClock;

/// How long a request to share busy responses is valid.
const SHARING_REQUEST_NS: u64 = 2_000_000_000;
/// How long the number of peers is valid.
const PEER_COUNT_NS: u64 = 15_000_000_000;

/// A region with its clock and key. Times are nanoseconds since its zero.
pub(crate) struct Store {
    pub(super) region: BusyRegion,
    pub(super) clock: TableClock,
    /// The key of the fingerprints.
    pub(super) key: [u64; 2],
}

impl Store {
    pub(crate) fn now(&self) -> u64 {
        self.clock.table_ns(self.clock.clock().now_ns())
    }

    /// Returns the record of a service, if it has one.
    pub(super) fn find(&self, key: ServiceKey) -> Option<&Service> {
        set::find(self.region.set(key.name()), key)
    }

    /// Returns the record of a service. Claims one if the service has none; see `set::take`.
    pub(super) fn take(
        &self,
        key: ServiceKey,
        now: u64,
        value: impl Fn(&Service) -> u64,
    ) -> (&Service, u64) {
        set::take(self.region.set(key.name()), key, || self.stamp(now), value)
    }

    /// Returns the records of all services with local calls.
    pub(super) fn services(&self) -> impl Iterator<Item = &Service> {
        self.region.services().iter().filter(|service| service.key().is_local())
    }

    /// Adds a busy response, which will be broadcast, to a record that belonged to the service a
    /// moment ago.
    pub(super) fn add_local_busy(&self, service: &Service, key: ServiceKey, report: BusyReport) {
        service.add_local_busy(key.name(), report);
        // Release: a process that sees the flag sees the report. A swap, because loom cannot order
        // a store with the change in `take_local_busy`.
        self.region.header().has_local_busy.swap(1, Ordering::Release);
    }

    /// Takes busy responses to broadcast, of at most `most` services, starting at the record
    /// `from`. Returns the record at which to continue.
    pub(super) fn take_local_busy(
        &self,
        from: usize,
        most: usize,
        mut out: impl FnMut(u64, BusyReport),
    ) -> usize {
        let flag = &self.region.header().has_local_busy;
        if flag.load(Ordering::Relaxed) == 0 {
            return from;
        }
        // Cleared before the records are read, which Acquire ensures, because reports added from
        // now on set the flag again.
        flag.swap(0, Ordering::Acquire);
        let mut taken = 0;
        for step in 0..SERVICES {
            let index = (from + step) % SERVICES;
            if taken == most {
                // A store would end the release sequence. With `fetch_or`, a process that sees the
                // flag also sees the reports that other processes added.
                flag.fetch_or(1, Ordering::Relaxed);
                return index;
            }
            if let Some((name, report)) = self.region.services()[index].take_local_busy() {
                taken += 1;
                out(name, report);
            }
        }
        from
    }

    /// Adds a peer's report about a service. Returns false if no record is free for it.
    pub(super) fn add_remote_busy(&self, name: u64, now: u64, report: BusyReport) -> bool {
        set::add_remote_busy(self.region.set(name), name, || self.stamp(now), report)
    }

    /// Forgets a service with these settings, and the reports of peers about it.
    pub(super) fn forget(&self, key: ServiceKey) {
        set::forget_remote_busy(self.region.set(key.name()), key.name());
        if let Some(service) = self.find(key) {
            service.forget(key);
        }
    }

    /// Requests that the exchanging process shares busy responses, for a few seconds.
    pub(super) fn request_sharing(&self) {
        self.region.header().shared_ns.store(self.now().max(1), Ordering::Relaxed);
    }

    /// Returns true if a process has called `request_sharing` recently.
    pub(super) fn is_sharing_requested(&self) -> bool {
        let requested_at = self.region.header().shared_ns.load(Ordering::Relaxed);
        // A time far in the future was written with another clock and does not count.
        requested_at != 0 && self.now().abs_diff(requested_at) < SHARING_REQUEST_NS
    }

    /// Writes the number of peers of the exchanging process.
    pub(super) fn set_peers(&self, peers: usize) {
        let header = self.region.header();
        header.peers.store(peers as u64, Ordering::Relaxed);
        header.exchanged_ns.store(self.now().max(1), Ordering::Relaxed);
    }

    /// Returns the number of peers; zero if no process has run the exchange for a while.
    pub(super) fn peers(&self, now: u64) -> u64 {
        let header = self.region.header();
        let written = header.exchanged_ns.load(Ordering::Relaxed);
        let is_valid = written != 0 && now.abs_diff(written) < PEER_COUNT_NS;
        if is_valid { header.peers.load(Ordering::Relaxed) } else { 0 }
    }

    pub(super) fn stamp(&self, now: u64) -> ClaimStamp {
        ClaimStamp::new(now, &self.region.header().claims)
    }
}
