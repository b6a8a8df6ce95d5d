//! The record of a service, and how its place goes from one to another. Who gets which is `set.rs`'s,
//! what the words mean is `busy/`'s, what peers are told and tell is `news.rs`'s.
//!
//! Whose a place is, is one value, and so is the step in which it goes to another. Until it is clean
//! its key has a token, and whoever finds it may clean it: the one who took it may be dead. Nobody
//! waits for anybody, and every change of a key is somebody's success. Words are wiped one by one, and
//! only for as long as the key says that they are another's, so that who comes late with it wipes
//! nothing new. Who has written what limits a service looks again whose place it was, and takes it
//! back. Each of the other words is changed by itself, and who is late changes a few numbers of
//! another's, from which the limit recovers like from anything else.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use super::cell::{AtomicU64, AtomicU128, full_fence};
use super::news::{News, Word};

/// A service that nobody asked about for so long is forgotten, unless it asked for a longer pause.
/// A time that is so far ahead is of another clock: a process that looked at the clock, and was then
/// held up, is not held up for so long.
pub(crate) const IDLE_NS: u64 = 60_000_000_000;

/// Whose record it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServiceKey {
    /// The fingerprint of the service: the same on all nodes of a cluster.
    name: u64,
    /// Stands for the settings by which its limit is counted; zero: nobody here asked about it, and
    /// all that is known is what peers said.
    settings: u32,
    /// Not zero: there may be something of another's in the place. Unlike that of any other claim,
    /// so that who cleans the place for one does not call it clean for the next.
    token: u32,
}

impl ServiceKey {
    const FREE: ServiceKey = ServiceKey { name: 0, settings: 0, token: 0 };

    pub(crate) fn new(name: u64, settings: u64) -> ServiceKey {
        ServiceKey { name: name.max(1), settings: (settings as u32).max(1), token: 0 }
    }

    /// What is known of a service only from peers.
    pub(super) fn hearsay(name: u64) -> ServiceKey {
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

    /// Whether somebody here asked about it.
    pub(super) fn is_asked(self) -> bool {
        self.name != 0 && self.settings != 0
    }

    fn to_bits(self) -> u128 {
        let rest = u64::from(self.token) << TOKEN_AT | u64::from(self.settings);
        u128::from(self.name) << 64 | u128::from(rest)
    }

    fn from_bits(bits: u128) -> ServiceKey {
        let rest = bits as u64;
        let (token, settings) = ((rest >> TOKEN_AT) as u32, rest as u32);
        ServiceKey { name: (bits >> 64) as u64, settings, token }
    }
}

const TOKEN_AT: u32 = 32;

/// The record of one service. All zero bytes are a free one.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(crate) struct Service {
    key: AtomicU128,
    /// What limits it, as one value.
    pub(crate) state: AtomicU128,
    /// What peers shall hear of it, and what they said.
    said: Word,
    pub(super) heard: Word,
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
    token: u32,
}

impl Moment {
    /// One with a token of its own, never zero, by the number of claims so far.
    pub(super) fn new(now: u64, claims: &AtomicU64) -> Moment {
        // Relaxed: only the number matters.
        let number = claims.fetch_add(1, Ordering::Relaxed);
        Moment { now, token: (number % u64::from(u32::MAX)) as u32 + 1 }
    }

    #[cfg(test)]
    pub(super) fn token(self) -> u32 {
        self.token
    }
}

/// What is lost with a place, from the least on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Price {
    /// It is its own already, but only as hearsay.
    Own,
    Free,
    /// When it was last used.
    Idle(u64),
    /// When peers last said something.
    Hearsay(u64),
    Worth(u64),
}

impl Service {
    /// Whose it is.
    pub(super) fn key(&self) -> ServiceKey {
        // Acquire: who finds its service finds the place clean.
        ServiceKey::from_bits(self.key.load(Ordering::Acquire))
    }

    /// Forgets everything but whose it is, and the news, for as long as something holds: what is
    /// written after that stays.
    pub(crate) fn wipe(&self, holds: impl Fn() -> bool) {
        // Acquire: whoever sees what was written (see `step`) sees why it no longer holds.
        let (done, seen) = (Ordering::Relaxed, Ordering::Acquire);
        let _ = self.state.fetch_update(done, seen, |bits| (bits != 0 && holds()).then_some(0));
        for word in [&self.paused_ns, &self.turn_ns, &self.sent, &self.good] {
            let _ = word.fetch_update(done, seen, |bits| (bits != 0 && holds()).then_some(0));
        }
    }

    /// Gives the place to another, unless somebody was faster. What peers said stays with the
    /// service of which they said it.
    pub(super) fn claim(&self, old: ServiceKey, new: ServiceKey, at: Moment) -> bool {
        if old == ServiceKey::FREE || old == ServiceKey::hearsay(new.name) {
            if new.is_asked() {
                // Before it is, so that nobody takes it for idle then.
                self.used(at.now);
            }
            return self.change_key(old, new);
        }
        let held = ServiceKey { token: at.token, ..new };
        let taken = self.change_key(old, held);
        if taken {
            self.clean(held, at.now);
        }
        taken
    }

    /// Wipes what a place has of another's, if it has.
    pub(super) fn clean(&self, held: ServiceKey, now: u64) {
        if held.is_clean() {
            return;
        }
        // Whoever still writes for the service before finds the place taken, or this finds what it
        // wrote. Whoever sees something of what follows finds it taken, too (`set.rs`).
        full_fence();
        let holds = || self.key() == held;
        self.wipe(holds);
        self.said.wipe(holds);
        self.heard.wipe(holds);
        if held.is_asked() {
            let used = |_| holds().then_some(now.max(1));
            let _ = self.used_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, used);
        }
        self.change_key(held, held.cleaned());
    }

    /// Forgets a service, if it is still its place.
    pub(crate) fn forget(&self, key: ServiceKey) {
        self.heard.take(|| key.name);
        self.wipe(|| self.key() == key);
        // Nothing else says that nobody asked about it.
        let holds = |_| (self.key() == key).then_some(0);
        let _ = self.used_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, holds);
    }

    /// Notes that somebody asks about it. What is idle begins anew.
    pub(crate) fn touch(&self, now: u64, is_idle: impl Fn() -> bool) {
        if is_idle() {
            // Of two who do so at once, the later one wipes nothing that the other has written since.
            self.wipe(is_idle);
        }
        self.used(now);
    }

    pub(super) fn used(&self, now: u64) {
        self.used_ns.store(now.max(1), Ordering::Relaxed);
    }

    /// Whether nobody asked about it for long, or only in a time that is not ours.
    pub(crate) fn is_unused(&self, now: u64) -> bool {
        let used = self.used_ns.load(Ordering::Relaxed);
        used == 0 || now.abs_diff(used) > IDLE_NS
    }

    fn change_key(&self, old: ServiceKey, new: ServiceKey) -> bool {
        let (old, new) = (old.to_bits(), new.to_bits());
        // Release: see `key`. Acquire: nothing is wiped before the place is taken.
        self.key.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Writes what limits a service, whose place this was a moment ago. If it went to another
    /// meanwhile, what was written is taken back.
    pub(crate) fn step<R>(&self, key: ServiceKey, write: impl FnOnce(&Writer<'_>) -> R) -> R {
        let writer = Writer::new(self);
        // Whoever sees what is written sees whose place it was: see `wipe`.
        full_fence();
        let answer = write(&writer);
        // See `clean`.
        full_fence();
        if self.key() != key {
            writer.take_back();
        }
        answer
    }

    /// What is lost with the place if it is this one's, unless that depends on its limit.
    pub(super) fn spare(&self, key: ServiceKey, now: u64) -> Option<Price> {
        match key {
            ServiceKey::FREE => Some(Price::Free),
            // Nobody writes that.
            ServiceKey { name: 0, .. } => Some(Price::Idle(0)),
            ServiceKey { name, settings: 0, .. } => Some(Price::Hearsay(self.heard.at_ns(name))),
            _ => {
                let used = self.used_ns.load(Ordering::Relaxed);
                // A pause of another time holds nobody up for longer than this one's.
                let is_ahead = used > now.saturating_add(IDLE_NS);
                let is_paused = self.paused_ns.load(Ordering::Relaxed) > now && !is_ahead;
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
        let mut key = ServiceKey::FREE;
        let news = self.said.take(|| {
            // After the news were taken: whoever noted them had found the place to be theirs.
            key = self.key();
            key.name
        })?;
        // Nobody says anything in a place that is nobody's, or not clean yet.
        (key.name != 0 && key.is_clean()).then_some((key.name, news))
    }

    /// Takes what peers said of a service, whose place this is.
    #[inline]
    pub(crate) fn take_heard(&self, name: u64) -> Option<News> {
        self.heard.take(|| name)
    }

    /// Takes over what another table knows; nobody else sees this one yet. A place that goes to
    /// another meanwhile stays free.
    pub(super) fn copy_from(&self, old: &Service) {
        let key = old.key();
        if !key.is_clean() {
            return;
        }
        // Acquire: the key is looked at again after all else.
        self.state.store(old.state.load(Ordering::Acquire), Ordering::Relaxed);
        self.said.copy_from(&old.said);
        self.heard.copy_from(&old.heard);
        for (new, old) in self.words().into_iter().zip(old.words()) {
            new.store(old.load(Ordering::Acquire), Ordering::Relaxed);
        }
        let is_still = old.key() == key;
        if !is_still {
            self.wipe(|| true);
            self.said.wipe(|| true);
            self.heard.wipe(|| true);
        }
        let key = if is_still { key } else { ServiceKey::FREE };
        self.key.store(key.to_bits(), Ordering::Relaxed);
    }

    /// Leaves it as somebody who dies right after taking it.
    #[cfg(test)]
    pub(super) fn leave(&self, key: ServiceKey, token: u32) {
        self.key.store(ServiceKey { token, ..key }.to_bits(), Ordering::Relaxed);
    }

    fn words(&self) -> [&AtomicU64; 5] {
        let Service { used_ns, paused_ns, turn_ns, sent, good, .. } = self;
        [used_ns, paused_ns, turn_ns, sent, good]
    }
}

/// Writes what limits a service, and remembers what it wrote.
pub(crate) struct Writer<'a> {
    service: &'a Service,
    state: Cell<Option<u128>>,
    paused_ns: Cell<Option<u64>>,
}

// Relaxed: every word stands for itself.
impl<'a> Writer<'a> {
    pub(crate) fn new(service: &'a Service) -> Writer<'a> {
        Writer { service, state: Cell::new(None), paused_ns: Cell::new(None) }
    }

    /// Changes the state in one step, unless there is nothing to change; whether it did.
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

    /// Changes until when nothing is sent.
    pub(crate) fn pause(&self, until: impl Fn(u64) -> u64) {
        let order = Ordering::Relaxed;
        let next = |before| Some(until(before)).filter(|after| *after != before);
        if let Ok(before) = self.service.paused_ns.fetch_update(order, order, next) {
            self.paused_ns.set(Some(until(before)));
        }
    }

    /// If it has changed again, its owner did.
    #[cold]
    fn take_back(&self) {
        let order = Ordering::Relaxed;
        if let Some(state) = self.state.get() {
            let _ = self.service.state.compare_exchange(state, 0, order, order);
        }
        if let Some(until) = self.paused_ns.get() {
            let _ = self.service.paused_ns.compare_exchange(until, 0, order, order);
        }
    }
}
