//! The places that a service may have, a few of all: found by fingerprint, taken from whom they are
//! worth least.
//!
//! Two who take one service over places of others at the same moment, and judge them differently, may
//! get two; the second is not found again, and a cut in it is lost.

use super::cell::{WAYS, full_fence};
use super::news::News;
use super::service::{Moment, Price, Service, ServiceKey};

/// The places of a service, whatever the settings.
pub(super) type Set = [Service; WAYS];

/// The place of a service, if it has one.
#[inline]
pub(super) fn find(set: &Set, key: ServiceKey) -> Option<&Service> {
    set.iter().find(|service| service.key() == key)
}

/// Whose the places are. Those that are not clean are cleaned before: whoever took them may be dead.
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

/// Whether the places were these services' while something was read before this.
fn is_still(set: &Set, keys: &[ServiceKey; WAYS]) -> bool {
    // Pairs with that of `clean`: who has read something of a new owner's sees its key.
    full_fence();
    set.iter().zip(keys).all(|(service, held)| service.key() == *held)
}

/// The place of a service, which gets the one worth least if it has none; and what that was worth to
/// whom it belonged, zero if nothing. `worth` says what a record that is in use is worth.
pub(super) fn take(
    set: &Set,
    key: ServiceKey,
    moment: impl Fn() -> Moment,
    worth: impl Fn(&Service) -> u64,
) -> (&Service, u64) {
    if let Some(service) = find(set, key) {
        return (service, 0);
    }
    loop {
        let at = moment();
        let keys = keys(set, at.now);
        let seen = || set.iter().zip(keys);
        if let Some((service, _)) = seen().find(|(_, held)| *held == key) {
            return (service, 0);
        }
        let price = |service: &Service, held| match held == ServiceKey::hearsay(key.name()) {
            true => Price::Own,
            false => service.spare(held, at.now).unwrap_or_else(|| Price::Worth(worth(service))),
        };
        let priced = seen().map(|(service, held)| (price(service, held), held, service));
        // What was judged is what goes: else somebody has been here meanwhile, maybe for the same.
        if let Some((price, held, service)) = priced.min_by_key(|(price, ..)| *price)
            && is_still(set, &keys)
            && service.claim(held, key, at)
        {
            let lost = if let Price::Worth(worth) = price { worth } else { 0 };
            return (service, lost);
        }
    }
}

/// Forgets what peers said of a service that nobody asked about.
pub(super) fn unhear(set: &Set, name: u64) {
    for service in set.iter().filter(|service| service.key() == ServiceKey::hearsay(name)) {
        service.take_heard(name);
    }
}

/// Notes what a peer said of a service. Whether somebody here may want to know. What nobody here
/// asked about has only places that are worth nothing to anybody.
pub(super) fn hear(set: &Set, name: u64, moment: impl Fn() -> Moment, news: News) -> bool {
    let key = ServiceKey::hearsay(name);
    loop {
        let at = moment();
        // Clean, or the news would go with what is another's.
        let keys = keys(set, at.now);
        let seen = || set.iter().zip(keys);
        let mut is_known = false;
        for (service, _) in seen().filter(|(_, held)| held.name() == key.name()) {
            service.heard.add(key.name(), news);
            is_known = true;
        }
        if is_known {
            return true;
        }
        let priced = |(service, held)| {
            Service::spare(service, held, at.now).map(|price| (price, held, service))
        };
        let spare = seen().filter_map(priced).min_by_key(|(price, ..)| *price);
        let Some((_, held, service)) = spare else { return false };
        // If somebody was faster, it may be known now.
        if service.claim(held, key, at) {
            service.heard.add(key.name(), news);
            return true;
        }
    }
}
