//! Looks at the whole table, which take long where it is full. What was seen is cached for a while, so
//! that nobody can keep the daemon busy by asking again and again.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use dthrottle::{Stats, Throttle, TopBucket};

/// The most that `top` tells.
pub(crate) const MAX_TOP: usize = 1000;
/// Kept for so many times as long as the look took: at most a twentieth of the time goes into scans.
const KEEP_FACTOR: u32 = 20;

#[derive(Default)]
pub(crate) struct ScanCache {
    stats: Cached<Stats>,
    top: Cached<Vec<TopBucket>>,
}

/// What was seen, and until when it is good.
struct Cached<T>(Mutex<Option<(T, Instant)>>);

impl<T> Default for Cached<T> {
    fn default() -> Cached<T> {
        Cached(Mutex::new(None))
    }
}

impl ScanCache {
    /// Counts of the throttle; those of decisions are of now.
    pub(crate) fn stats(&self, throttle: &Throttle) -> Stats {
        let mut stats = self.stats.get_or_scan(Instant::now, || throttle.stats());
        (stats.allowed, stats.refused) = throttle.decisions();
        stats
    }

    /// The buckets used most.
    pub(crate) fn top(&self, throttle: &Throttle, count: usize) -> Vec<TopBucket> {
        let mut top = self.top.get_or_scan(Instant::now, || throttle.top(MAX_TOP));
        top.truncate(count);
        top
    }
}

impl<T: Clone> Cached<T> {
    fn get_or_scan(&self, now: impl Fn() -> Instant, scan: impl FnOnce() -> T) -> T {
        // Who comes while another scans waits for what it sees.
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let start = now();
        if let Some((value, until)) = &*cached
            && start < *until
        {
            return value.clone();
        }
        let value = scan();
        let end = now();
        let took = end.saturating_duration_since(start).min(Duration::from_secs(1));
        *cached = Some((value.clone(), end + took * KEEP_FACTOR));
        value
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_look_is_kept_for_as_long_as_it_is_dear() {
        let cache = Cached::default();
        let now = Cell::new(Instant::now());
        let scans = Cell::new(0);
        let wait = |ms: u64| now.set(now.get() + Duration::from_millis(ms));
        let ask = || {
            cache.get_or_scan(
                || now.get(),
                || {
                    scans.set(scans.get() + 1);
                    wait(10);
                    scans.get()
                },
            )
        };
        assert_eq!(ask(), 1);
        wait(199);
        assert_eq!(ask(), 1);
        wait(1);
        assert_eq!((ask(), scans.get()), (2, 2));
    }
}
