//! What the nodes of a cluster tell each other of busy services, on its way through the table:
//! a process notes what it was answered, whoever exchanges takes it and tells the peers; what peers
//! tell is noted beside, and taken by the next who asks about the service.
//!
//! The two never meet: what was heard is never said. News are one value, and it says whose they
//! are, so that nobody takes them for another's while a place goes from service to service.

use std::sync::atomic::Ordering;

use super::cell::AtomicU128;

/// The fields of news in memory, from the lowest bit on. Times are in microseconds: 48 bits of them
/// are nine years of a table.
const NAME_BITS: u32 = 16;
const AT_BITS: u32 = 48;
const COUNT_BITS: u32 = 8;
const UNTIL_BITS: u32 = 56;

const AT_AT: u32 = NAME_BITS;
const COUNT_AT: u32 = AT_AT + AT_BITS;
const UNTIL_AT: u32 = COUNT_AT + COUNT_BITS;

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

impl News {
    /// The sum of both.
    fn with(self, other: News) -> News {
        News {
            at_ns: self.at_ns.max(other.at_ns),
            answers: self.answers.saturating_add(other.answers),
            until_ns: self.until_ns.max(other.until_ns),
        }
    }

    fn to_bits(self, name: u64) -> u128 {
        let field = |value: u64, bits: u32, at: u32| u128::from(value.min((1 << bits) - 1)) << at;
        u128::from(short(name))
            | field(self.at_ns / 1000, AT_BITS, AT_AT)
            | field(self.answers.max(1), COUNT_BITS, COUNT_AT)
            // A pause does not end too early.
            | field(self.until_ns.div_ceil(1000), UNTIL_BITS, UNTIL_AT)
    }

    /// Nothing: there are none, or they are another's.
    fn from_bits(bits: u128, name: u64) -> Option<News> {
        let field = |width: u32, at: u32| (bits >> at) as u64 & ((1 << width) - 1);
        let is_its = field(NAME_BITS, 0) == short(name);
        let ns = |us: u64| us.saturating_mul(1000);
        (is_its && field(COUNT_BITS, COUNT_AT) > 0).then(|| News {
            at_ns: ns(field(AT_BITS, AT_AT)),
            answers: field(COUNT_BITS, COUNT_AT),
            until_ns: ns(field(UNTIL_BITS, UNTIL_AT)),
        })
    }
}

/// News that were not passed on yet, and whose. All zero bytes are none.
#[repr(transparent)]
#[derive(Debug, Default)]
pub(super) struct Word(AtomicU128);

impl Word {
    /// Adds what is new of a service to what was not passed on.
    pub(super) fn add(&self, name: u64, news: News) {
        // Release: who takes the news sees whose place it was.
        let _ = self.0.fetch_update(Ordering::Release, Ordering::Relaxed, |bits| {
            let all = News::from_bits(bits, name).map_or(news, |before| before.with(news));
            Some(all.to_bits(name))
        });
    }

    /// Takes all, if they are this service's when they are taken.
    #[inline]
    pub(super) fn take(&self, name: impl FnOnce() -> u64) -> Option<News> {
        // Most of the time there is nothing, and then nothing is written.
        if self.0.load(Ordering::Relaxed) == 0 {
            return None;
        }
        // Acquire: as above.
        let bits = self.0.swap(0, Ordering::Acquire);
        News::from_bits(bits, name())
    }

    /// Forgets them for as long as something holds: what is noted after that stays.
    pub(super) fn wipe(&self, holds: impl Fn() -> bool) {
        // Acquire: pairs with the Release of `add`, so that what no longer holds is seen.
        let next = |bits| (bits != 0 && holds()).then_some(0);
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Acquire, next);
    }

    /// When the last was of what this service has here.
    pub(super) fn at_ns(&self, name: u64) -> u64 {
        News::from_bits(self.0.load(Ordering::Relaxed), name).map_or(0, |news| news.at_ns)
    }

    pub(super) fn copy_from(&self, other: &Word) {
        // Acquire: whose they were is looked at after this.
        self.0.store(other.0.load(Ordering::Acquire), Ordering::Relaxed);
    }
}

/// As much of a name as there is room for. Services of one set have the upper bits in common.
fn short(name: u64) -> u64 {
    name & ((1 << NAME_BITS) - 1)
}

const _: () = assert!(UNTIL_AT + UNTIL_BITS == u128::BITS);
