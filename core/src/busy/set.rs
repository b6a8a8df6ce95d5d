//! The set of records in which a service may be: lookup by fingerprint, and eviction of the service
//! with the lowest eviction cost.
//!
//! If two processes claim records for one service at the same time and judge the records
//! differently, the service may get two. The second is not found again, and a cut in it is lost.

use super::cell::{WAYS, full_fence};
use super::report::BusyReport;
use super::service::{ClaimStamp, EvictionCost, Service, ServiceKey};

/// The records of services whose fingerprints have the same upper bits.
pub(super) type Set = [Service; WAYS];

/// Returns the record of a service, if it has one.
#[inline]
pub(super) fn find(set: &Set, key: ServiceKey) -> Option<&Service> {
    set.iter().find(|service| service.key() == key)
}

/// Returns the owners. Records that are not clean are cleaned first, because the process that took
/// them may be dead.
fn keys(set: &Set, now: u64) -> [ServiceKey; WAYS] {
    loop {
        let keys = set.each_ref().map(Service::key);
        let mut dirty = set.iter().zip(keys).filter(|(_, held)| !held.is_clean()).peekable();
        if dirty.peek().is_none() {
            return keys;
        }
        dirty.for_each(|(service, held)| service.clean(held, now));
    }
}

/// Returns true if these were the owners while the preceding words were read.
fn is_still(set: &Set, keys: &[ServiceKey; WAYS]) -> bool {
    // Pairs with the fence in `clean`: a process that has read a word of a new owner sees its key.
    full_fence();
    set.iter().zip(keys).all(|(service, held)| service.key() == *held)
}

/// Returns the record of a service. If it has none, it takes the one with the lowest eviction cost.
/// Also returns how valuable that one was to its owner, or zero. `value` judges a record that is in
/// use.
pub(super) fn take(
    set: &Set,
    key: ServiceKey,
    stamp: impl Fn() -> ClaimStamp,
    value: impl Fn(&Service) -> u64,
) -> (&Service, u64) {
    if let Some(service) = find(set, key) {
        return (service, 0);
    }
    loop {
        let stamp = stamp();
        let keys = keys(set, stamp.now);
        let seen = || set.iter().zip(keys);
        if let Some((service, _)) = seen().find(|(_, held)| *held == key) {
            return (service, 0);
        }
        let cost = |service: &Service, held| match held == ServiceKey::remote_only(key.name()) {
            true => EvictionCost::SameRemote,
            false => service
                .cost_unless_used(held, stamp.now)
                .unwrap_or_else(|| EvictionCost::InUse(value(service))),
        };
        let judged = seen().map(|(service, held)| (cost(service, held), held, service));
        // Repeats if the owners have changed since they were judged, because the service may have
        // got a record.
        if let Some((cost, held, service)) = judged.min_by_key(|(cost, ..)| *cost)
            && is_still(set, &keys)
            && service.claim(held, key, stamp)
        {
            let lost = if let EvictionCost::InUse(value) = cost { value } else { 0 };
            return (service, lost);
        }
    }
}

/// Removes what peers reported about a service without local calls.
pub(super) fn forget_remote_busy(set: &Set, name: u64) {
    for service in set.iter().filter(|service| service.key() == ServiceKey::remote_only(name)) {
        service.take_remote_busy(name);
    }
}

/// Adds what a peer reported about a service. A service without local calls gets only a record that
/// is not in use. Returns false if there is none.
pub(super) fn add_remote_busy(
    set: &Set,
    name: u64,
    stamp: impl Fn() -> ClaimStamp,
    report: BusyReport,
) -> bool {
    let key = ServiceKey::remote_only(name);
    loop {
        let stamp = stamp();
        // Only clean records are used, because cleaning would remove the report.
        let keys = keys(set, stamp.now);
        let seen = || set.iter().zip(keys);
        let mut is_known = false;
        for (service, _) in seen().filter(|(_, held)| held.name() == key.name()) {
            service.remote.add(key.name(), report);
            is_known = true;
        }
        if is_known {
            return true;
        }
        let judged = |(service, held)| {
            Service::cost_unless_used(service, held, stamp.now).map(|cost| (cost, held, service))
        };
        let unused = seen().filter_map(judged).min_by_key(|(cost, ..)| *cost);
        let Some((_, held, service)) = unused else { return false };
        // Otherwise repeats: another process may have claimed the record for this service.
        if service.claim(held, key, stamp) {
            service.remote.add(key.name(), report);
            return true;
        }
    }
}
