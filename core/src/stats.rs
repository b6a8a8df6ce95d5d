//! Counters of a throttle.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::local::LOCAL;

crate::records!(Stats, crate::records::define, Copy, Default);

/// The counters behind [`Stats`]. There are several sets, so that counting is cheap: each of the
/// first threads has its own set, and all other threads share the last one.
#[derive(Debug, Default)]
pub(crate) struct Counters([Stripe; STRIPES]);

const STRIPES: usize = 32;
const SHARED: usize = STRIPES - 1;
/// The stripe of a thread that has no counters yet.
pub(crate) const NO_STRIPE: usize = usize::MAX;

/// A set of counters in a cache line of its own.
#[repr(align(64))]
#[derive(Debug, Default)]
struct Stripe([Counter; COUNTS]);

const COUNTS: usize = 5;

/// The counted events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    Allowed,
    Refused,
    DryRun,
    FailedOpen,
    Clamped,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds one. Only one thread may add to this counter.
    fn add_one_alone(&self) {
        // Relaxed: counters order nothing.
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, count: u64) {
        if count > 0 {
            // Relaxed: as above.
            self.0.fetch_add(count, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    #[inline]
    pub(crate) fn add_one(&self, count: Count) {
        let stripe = LOCAL.with(|local| local.stripe.get());
        if stripe < SHARED {
            self.0[stripe].0[count as usize].add_one_alone();
        } else {
            self.add_one_shared(count);
        }
    }

    /// For a thread that shares its counters or has none yet.
    #[cold]
    fn add_one_shared(&self, count: Count) {
        let stripe = LOCAL.with(|local| match local.stripe.get() {
            NO_STRIPE => {
                local.stripe.set(new_stripe());
                local.stripe.get()
            }
            stripe => stripe,
        });
        self.0[stripe].0[count as usize].add(1);
    }

    /// The sums of these counters. All other fields are 0.
    pub(crate) fn stats(&self) -> Stats {
        let sum = |count: Count| self.0.iter().map(|stripe| stripe.0[count as usize].get()).sum();
        Stats {
            allowed: sum(Count::Allowed),
            refused: sum(Count::Refused),
            dry_run: sum(Count::DryRun),
            failed_open: sum(Count::FailedOpen),
            clamped: sum(Count::Clamped),
            ..Stats::default()
        }
    }
}

/// Assigns counters to a new thread. They are not released when the thread ends, because its counts
/// stay.
fn new_stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: only the number matters.
    let next = NEXT.update(Ordering::Relaxed, Ordering::Relaxed, |next| next.saturating_add(1));
    next.min(SHARED)
}
