//! What a throttle counts about itself.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the throttle was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Checks allowed, those that only dry run allowed included.
    pub allowed: u64,
    /// Checks refused.
    pub refused: u64,
    /// Checks that were allowed only because of dry run.
    pub dry_run: u64,
    /// Charges that were not counted, because the table had no room: they failed open.
    pub failed_open: u64,
    /// How often the debt of a bucket went beyond what a bucket can hold.
    pub clamped: u64,
    /// Buckets that are not full now.
    pub buckets: u64,
}

/// The counters behind [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) allowed: Counter,
    pub(crate) refused: Counter,
    pub(crate) dry_run: Counter,
    pub(crate) failed_open: Counter,
    pub(crate) clamped: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add_one(&self) {
        // Relaxed: a count orders nothing.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(crate) fn stats(&self, buckets: usize) -> Stats {
        Stats {
            allowed: self.allowed.get(),
            refused: self.refused.get(),
            dry_run: self.dry_run.get(),
            failed_open: self.failed_open.get(),
            clamped: self.clamped.get(),
            buckets: buckets as u64,
        }
    }
}
