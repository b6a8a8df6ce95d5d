//! Buckets that earlier processes left in a named table. Such a table outlives its processes, so a
//! new process may refuse a client that it has not seen yet. That is intended in production but
//! confusing in development, so HTTP middleware logs it once.
#![cfg_attr(
    not(all(feature = "shared", target_os = "linux")),
    allow(dead_code, reason = "there are no named tables")
)]

use std::sync::atomic::{AtomicBool, Ordering};

use super::Table;
use super::location::Location;

/// If a table has more buckets, it is not checked for earlier ones. A busy service that restarts
/// often should not scan its whole table at every start.
const MAX_REMEMBERED: usize = 1000;

/// Buckets that were not full when this process opened the table while no other process used it.
#[derive(Debug, Default)]
pub(crate) struct EarlierBuckets {
    /// Fingerprints of the buckets, and the table time at which each is full again if this process
    /// takes nothing from it.
    buckets: Vec<(u64, u64)>,
    /// The last of these times.
    end: u64,
    is_reported: AtomicBool,
}

impl EarlierBuckets {
    /// Collects the buckets of a table that no other process uses.
    pub(crate) fn of(table: &Table, now: u64) -> EarlierBuckets {
        let mut buckets = Vec::new();
        table.each_while(now, |bucket, _, scale| {
            buckets.push((bucket.key.fingerprint, now + scale.reset_after(bucket.tat, now)));
            buckets.len() <= MAX_REMEMBERED
        });
        if buckets.len() > MAX_REMEMBERED {
            buckets.clear();
        }
        let end = buckets.iter().map(|(_, end)| *end).max().unwrap_or(0);
        EarlierBuckets { buckets, end, is_reported: AtomicBool::new(false) }
    }

    /// Returns true once, when one of these buckets is not full because of an earlier process.
    pub(crate) fn report(&self, now: u64, mut fingerprints: impl Iterator<Item = u64>) -> bool {
        // Relaxed: nothing else depends on it.
        if now >= self.end || self.is_reported.load(Ordering::Relaxed) {
            return false;
        }
        let is_earlier = |fingerprint: u64| {
            let fingerprint = Location::stored(fingerprint);
            self.buckets.iter().any(|(known, end)| *known == fingerprint && now < *end)
        };
        // Relaxed: no other data depends on it.
        fingerprints.any(is_earlier) && !self.is_reported.swap(true, Ordering::Relaxed)
    }
}
