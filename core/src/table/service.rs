//! The records of services, and how they go from one to another: found by fingerprint, in sets of a
//! few places. What the words mean is `busy/`'s; what peers are told and told is `news.rs`'s.
//!
//! Whose a place is, is one value, and a free place is clean. Who takes the place of another closes
//! it first, then clears it, and only then calls it its own: whoever is killed at any instruction
//! leaves places that work, and who finds a service finds nothing of another's. Who has written what
//! limits a service looks again whose place it was. Each of the other words is changed by itself, and
//! who is late changes a few numbers of another's, from which the limit recovers like from anything
//! else. Two who take one service over places of others at the same moment may get two; the second
//! is not found again, and a cut in it is lost.

use std::sync::atomic::Ordering;

use super::cell::{AtomicU64, AtomicU128, WAYS, full_fence};
use super::news::{News, Word};

/// A service that nobody asked about for so long is forgotten, unless it asked for a longer pause.
pub(crate) const IDLE_NS: u64 = 60_000_000_000;

/// Whose record it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServiceKey {
    /// The fingerprint of the service: the same on all nodes of a cluster.
    name: u64,
    /// Stands for the settings by which its limit is counted; zero: nobody here asked about it, and
    /// all that is known is what peers said.
    settings: u64,
}

impl ServiceKey {
    const FREE: ServiceKey = ServiceKey { name: 0, settings: 0 };

    pub(crate) fn new(name: u64, settings: u64) -> ServiceKey {
        ServiceKey { name: name.max(1), settings: settings.max(1) }
    }

    /// What is known of a service only from peers.
    fn hearsay(name: u64) -> ServiceKey {
        ServiceKey { name: name.max(1), settings: 0 }
    }

    /// A place on its way to another service, by a token unlike any other. If it stays so, whoever
    /// was about to take it is dead.
    fn closed(token: u64) -> ServiceKey {
        ServiceKey { name: 0, settings: token.max(1) }
    }

    pub(crate) fn name(self) -> u64 {
        self.name
    }

    /// Whether somebody here asked about it.
    pub(super) fn is_asked(self) -> bool {
        self.name != 0 && self.settings != 0
    }

    fn to_bits(self) -> u128 {
        u128::from(self.name) << 64 | u128::from(self.settings)
    }

    fn from_bits(bits: u128) -> ServiceKey {
        ServiceKey { name: (bits >> 64) as u64, settings: bits as u64 }
    }
}

/// The record of one service. All zero bytes are a free one.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(crate) struct Service {
    key: AtomicU128,
    /// What limits it, as one value.
    pub(crate) state: AtomicU128,
    /// What peers shall hear of it, and what they said.
    said: Word,
    heard: Word,
    /// When somebody last asked about it; zero: it was forgotten, or nobody did.
    pub(crate) used_ns: AtomicU64,
    /// Until when nothing may be sent.
    pub(crate) paused_ns: AtomicU64,
    /// When the next request has its turn.
    pub(crate) turn_ns: AtomicU64,
    /// How often requests are sent, and answers are good.
    pub(crate) sent: AtomicU64,
    pub(crate) good: AtomicU64,
}

/// When a place is taken, and by whom.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: u64,
    /// Unlike that of any other who takes a place.
    pub(super) token: u64,
}

/// The places of a service, whatever the settings.
pub(super) type Set = [Service; WAYS];

/// What is lost with a place, from the least on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Price {
    /// It is its own already, but only as hearsay.
    Own,
    Free,
    /// When it was last used.
    Idle(u64),
    /// When peers last said something.
    Hearsay(u64),
    Closed,
    Worth(u64),
}

impl Service {
    /// Whose it is.
    pub(super) fn key(&self) -> ServiceKey {
        // Acquire: who finds its service finds the place cleared.
        ServiceKey::from_bits(self.key.load(Ordering::Acquire))
    }

    /// Forgets everything but whose it is, and the news. Relaxed: every word stands for itself.
    pub(crate) fn clear(&self) {
        self.state.store(0, Ordering::Relaxed);
        for word in [&self.paused_ns, &self.turn_ns, &self.sent, &self.good] {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Gives the place to another, unless somebody was faster. What peers said stays with the
    /// service of which they said it.
    fn claim(&self, mut old: ServiceKey, new: ServiceKey, at: Moment) -> bool {
        if ![ServiceKey::FREE, ServiceKey::hearsay(new.name)].contains(&old) {
            let closed = ServiceKey::closed(at.token);
            if !self.change_key(old, closed) {
                return false;
            }
            // Whoever still writes for the service before finds the place closed, or this clears it.
            full_fence();
            self.clear();
            self.said.clear();
            self.heard.clear();
            old = closed;
        }
        if new.is_asked() {
            // So that nobody takes it for idle meanwhile.
            self.used(at.now);
        }
        self.change_key(old, new)
    }

    /// Notes that somebody asks about it.
    pub(crate) fn used(&self, now: u64) {
        self.used_ns.store(now.max(1), Ordering::Relaxed);
    }

    /// Whether nobody asked about it for long.
    pub(crate) fn is_unused(&self, now: u64) -> bool {
        let used = self.used_ns.load(Ordering::Relaxed);
        used == 0 || now.saturating_sub(used) > IDLE_NS
    }

    fn change_key(&self, old: ServiceKey, new: ServiceKey) -> bool {
        let (old, new) = (old.to_bits(), new.to_bits());
        // Release: see `key`. Acquire: nothing is cleared before the place is closed.
        self.key.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// For those who have written what limits a service: if its place went to another meanwhile,
    /// that one begins anew.
    pub(crate) fn look_again(&self, key: ServiceKey) {
        full_fence();
        if self.key() != key {
            self.clear();
        }
    }

    /// What is lost with the place if it is this one's, unless that depends on its limit.
    fn spare(&self, key: ServiceKey, now: u64) -> Option<Price> {
        match key {
            ServiceKey::FREE => Some(Price::Free),
            ServiceKey { name: 0, .. } => Some(Price::Closed),
            ServiceKey { name, settings: 0 } => Some(Price::Hearsay(self.heard.at_ns(name))),
            _ => {
                let used = self.used_ns.load(Ordering::Relaxed);
                let is_paused = self.paused_ns.load(Ordering::Relaxed) > now;
                (self.is_unused(now) && !is_paused).then_some(Price::Idle(used))
            }
        }
    }

    /// Notes what peers shall hear of a service, whose place this is.
    pub(super) fn say(&self, name: u64, news: News) {
        self.said.add(name, news);
    }

    /// Takes what peers shall hear, and of whom.
    pub(super) fn take_said(&self) -> Option<(u64, News)> {
        let mut name = 0;
        let news = self.said.take(|| {
            // After the news were taken: whoever noted them had found the place to be theirs.
            name = self.key().name;
            name
        })?;
        Some((name, news))
    }

    /// Takes what peers said of a service, whose place this is.
    #[inline]
    pub(crate) fn take_heard(&self, name: u64) -> Option<News> {
        self.heard.take(|| name)
    }

    /// Takes over what another table knows; nobody else sees this one yet.
    pub(super) fn copy_from(&self, old: &Service) {
        for (new, old) in [(&self.key, &old.key), (&self.state, &old.state)] {
            new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        for (new, old) in [(&self.said, &old.said), (&self.heard, &old.heard)] {
            new.copy_from(old);
        }
        for (new, old) in self.words().into_iter().zip(old.words()) {
            new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    fn words(&self) -> [&AtomicU64; 5] {
        let Service { used_ns, paused_ns, turn_ns, sent, good, .. } = self;
        [used_ns, paused_ns, turn_ns, sent, good]
    }
}

/// The place of a service, if it has one.
#[inline]
pub(super) fn find(set: &Set, key: ServiceKey) -> Option<&Service> {
    set.iter().find(|service| service.key() == key)
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
        let keys = set.each_ref().map(Service::key);
        let seen = || set.iter().zip(keys);
        if let Some((service, _)) = seen().find(|(_, held)| *held == key) {
            return (service, 0);
        }
        let price = |service: &Service, held| match held == ServiceKey::hearsay(key.name) {
            true => Price::Own,
            false => service.spare(held, at.now).unwrap_or_else(|| Price::Worth(worth(service))),
        };
        let priced = seen().map(|(service, held)| (price(service, held), held, service));
        // What was judged is what goes: else somebody has been here meanwhile.
        if let Some((price, held, service)) = priced.min_by_key(|(price, ..)| *price)
            && service.claim(held, key, at)
        {
            let lost = if let Price::Worth(worth) = price { worth } else { 0 };
            return (service, lost);
        }
    }
}

/// Notes what a peer said of a service. Whether somebody here may want to know. What nobody here
/// asked about has only places that are worth nothing to anybody.
pub(super) fn hear(set: &Set, name: u64, moment: impl Fn() -> Moment, news: News) -> bool {
    let key = ServiceKey::hearsay(name);
    loop {
        let keys = set.each_ref().map(Service::key);
        let seen = || set.iter().zip(keys);
        let mut is_known = false;
        for (service, _) in seen().filter(|(_, held)| held.name == key.name) {
            service.heard.add(key.name, news);
            is_known = true;
        }
        if is_known {
            return true;
        }
        let at = moment();
        let priced = |(service, held)| {
            Service::spare(service, held, at.now).map(|price| (price, held, service))
        };
        let spare = seen().filter_map(priced).min_by_key(|(price, ..)| *price);
        let Some((_, held, service)) = spare else { return false };
        // If somebody was faster, it may be known now.
        if service.claim(held, key, at) {
            service.heard.add(key.name, news);
            return true;
        }
    }
}
