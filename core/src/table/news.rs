//! What the nodes of a cluster tell each other of busy services, on its way through the table:
//! a process notes what it was answered, whoever exchanges takes it and tells the peers; what peers
//! tell is noted beside, and taken by the next who asks about the service.
//!
//! The two never meet: what was heard is never said. What is heard of services that nobody here
//! asked about has only places that are worth nothing to anybody.

use std::sync::atomic::Ordering;

use super::Table;
use super::cell::AtomicU64;
use super::services::Service;

/// A service that nobody asked about for so long is forgotten, unless it asked for a longer pause.
pub(crate) const IDLE_NS: u64 = 60_000_000_000;
/// How long the wish to exchange busy answers holds without being repeated.
const WISH_NS: u64 = 2_000_000_000;
const COUNT_BITS: u32 = 8;
const MOST: u64 = (1 << COUNT_BITS) - 1;

/// Busy answers that were not passed on yet.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct Word {
    /// When the last was, in microseconds, and how many there were; zero: none.
    answers: AtomicU64,
    /// Until when the service asked for a pause.
    until_ns: AtomicU64,
}

/// Busy answers of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News {
    /// When the last was, by the table's time.
    pub at_ns: u64,
    /// How many there were, 1 to 255; more count as 255.
    pub answers: u64,
    /// Until when the service asked for a pause; zero: it did not.
    pub until_ns: u64,
}

impl Word {
    /// Adds what is new to what was not passed on.
    fn add(&self, news: News) {
        // Relaxed: each word stands for itself. The pause comes first, so that whoever sees the
        // answers mostly sees the pause, too.
        self.until_ns.fetch_max(news.until_ns, Ordering::Relaxed);
        self.answers.update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            let at = (word >> COUNT_BITS).max(news.at_ns / 1000) & (u64::MAX >> COUNT_BITS);
            let count = (word & MOST).saturating_add(news.answers.clamp(1, MOST)).min(MOST);
            at << COUNT_BITS | count
        });
    }

    pub(super) fn take(&self) -> Option<News> {
        // Most of the time there is nothing, and then nothing is written.
        if self.answers.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let word = self.answers.swap(0, Ordering::Relaxed);
        let until_ns = self.until_ns.swap(0, Ordering::Relaxed);
        let at_ns = (word >> COUNT_BITS).saturating_mul(1000);
        (word != 0).then_some(News { at_ns, answers: (word & MOST).max(1), until_ns })
    }

    fn at_us(&self) -> u64 {
        self.answers.load(Ordering::Relaxed) >> COUNT_BITS
    }
}

impl Service {
    /// Takes what peers said of it.
    #[inline]
    pub(crate) fn take_heard(&self) -> Option<News> {
        self.heard.take()
    }

    /// Whether its place may go to what is only hearsay.
    fn is_spare(&self, now: u64) -> bool {
        let used = self.used_ns.load(Ordering::Relaxed);
        let is_idle = now.saturating_sub(used) > IDLE_NS;
        self.is_free()
            || self.is_hearsay()
            || is_idle && self.paused_ns.load(Ordering::Relaxed) <= now
    }
}

impl Table {
    /// Notes what peers shall hear of a service.
    pub(crate) fn say(&self, service: &Service, news: News) {
        service.said.add(news);
        self.region.header().busy_said.store(1, Ordering::Relaxed);
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
        // Before the look: what is said from here on is said again.
        said.store(0, Ordering::Relaxed);
        let services = self.region.services();
        let mut taken = 0;
        for step in 0..services.len() {
            let place = (from + step) % services.len();
            if taken == most {
                said.store(1, Ordering::Relaxed);
                return place;
            }
            if let Some(news) = services[place].said.take() {
                taken += 1;
                out(services[place].name.load(Ordering::Relaxed), news);
            }
        }
        from
    }

    /// Notes what a peer said of a service. Whether somebody here may want to know.
    pub(crate) fn hear(&self, name: u64, now: u64, news: News) -> bool {
        let ways = self.ways(name);
        let mut is_known = false;
        let own = ways.iter().filter(|service| service.name.load(Ordering::Relaxed) == name);
        for service in own.filter(|service| !service.is_free()) {
            service.heard.add(news);
            is_known = true;
        }
        if is_known {
            return true;
        }
        // Free places first, then the oldest hearsay.
        let spare = ways.iter().filter(|service| service.is_spare(now));
        let order = |service: &&Service| match (service.is_free(), service.is_hearsay()) {
            (true, _) => (0, 0),
            (_, false) => (1, service.used_ns.load(Ordering::Relaxed)),
            (_, true) => (2, service.heard.at_us()),
        };
        let Some(service) = spare.min_by_key(order) else { return false };
        let claimed = service.claim(service.mark(), name.max(1), name, false);
        if claimed {
            service.heard.add(news);
        }
        claimed
    }

    /// Says that busy answers shall be exchanged, for as long as somebody goes on saying so.
    pub(crate) fn wish_busy(&self, now: u64) {
        self.region.header().busy_wished_ns.store(now.max(1), Ordering::Relaxed);
    }

    /// Whether somebody says so.
    pub(crate) fn is_busy_wished(&self, now: u64) -> bool {
        let wished = self.region.header().busy_wished_ns.load(Ordering::Relaxed);
        wished != 0 && now.saturating_sub(wished) < WISH_NS
    }
}
