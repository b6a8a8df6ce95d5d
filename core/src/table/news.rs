//! What the nodes of a cluster tell each other of busy services, on its way through the table:
//! a process notes what it was answered, whoever exchanges takes it and tells the peers; what peers
//! tell is noted beside, and taken by the next who asks about the service.
//!
//! The two never meet: what was heard is never said. What is heard of services that nobody here
//! asked about has only places that are worth nothing to anybody.

use std::sync::atomic::Ordering;

use super::Table;
use super::cell::AtomicU64;
use super::services::{SERVICES, ServicePlace};

/// A service that nobody asked about for so long is forgotten, unless it asked for a longer pause.
pub(crate) const IDLE_NS: u64 = 60_000_000_000;
/// How long the wish to exchange busy answers holds without being repeated.
const WISH_NS: u64 = 2_000_000_000;
const COUNT_BITS: u32 = 8;
const MOST: u64 = (1 << COUNT_BITS) - 1;

/// What peers are told of a service, and what they told. All zero bytes are nothing.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct Board {
    /// The service's fingerprint, as peers know it.
    name: AtomicU64,
    said: Word,
    heard: Word,
}

/// Busy answers that were not passed on yet.
#[repr(C)]
#[derive(Debug, Default)]
struct Word {
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

    fn take(&self) -> Option<News> {
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

impl Board {
    pub(super) fn name(&self) -> u64 {
        self.name.load(Ordering::Relaxed)
    }

    /// Is another service's from now on.
    pub(super) fn begin(&self, name: u64, keeps_news: bool) {
        self.name.store(name, Ordering::Relaxed);
        if !keeps_news {
            self.said.take();
            self.heard.take();
        }
    }
}

impl ServicePlace<'_> {
    /// Takes what peers said of it.
    #[inline]
    pub(crate) fn take_heard(self) -> Option<News> {
        self.board?.heard.take()
    }

    /// Whether it may go to what is only hearsay.
    fn is_spare(self, now: u64) -> bool {
        let used = self.service.used_ns.load(Ordering::Relaxed);
        let is_idle = now.saturating_sub(used) > IDLE_NS;
        self.is_free()
            || self.is_hearsay()
            || is_idle && self.service.paused_ns.load(Ordering::Relaxed) <= now
    }
}

impl Table {
    /// Notes what peers shall hear of a service.
    pub(crate) fn say(&self, place: ServicePlace<'_>, news: News) {
        if let Some(board) = place.board {
            board.said.add(news);
            // Release: who sees this sees the news.
            self.region.header().busy_said.store(1, Ordering::Release);
        }
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
            let Some(board) = self.region.boards().get(index) else { continue };
            if taken == most {
                said.store(1, Ordering::Relaxed);
                return index;
            }
            if let Some(news) = board.said.take() {
                taken += 1;
                out(board.name(), news);
            }
        }
        from
    }

    /// Notes what a peer said of a service. Whether somebody here may want to know.
    pub(crate) fn hear(&self, name: u64, now: u64, news: News) -> bool {
        let mut is_known = false;
        for place in self.ways(name).filter(|place| !place.is_free()) {
            if let Some(board) = place.board.filter(|board| board.name() == name) {
                board.heard.add(news);
                is_known = true;
            }
        }
        if is_known {
            return true;
        }
        // Free places first, then the oldest hearsay.
        let order = |place: &ServicePlace<'_>| match (place.is_free(), place.is_hearsay()) {
            (true, _) => (0, 0),
            (_, false) => (1, place.service.used_ns.load(Ordering::Relaxed)),
            (_, true) => (2, place.board.map_or(0, |board| board.heard.at_us())),
        };
        let spare = self.ways(name).filter(|place| place.is_spare(now)).min_by_key(order);
        let Some((place, board)) = spare.and_then(|place| Some((place, place.board?))) else {
            return false;
        };
        let claimed = place.claim(place.mark(), name.max(1), name, false);
        if claimed {
            board.heard.add(news);
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
