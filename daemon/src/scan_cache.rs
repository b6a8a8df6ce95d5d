//! A cache for results that need a scan of the whole table. A scan takes long if the table is
//! large, so repeated requests for it must not keep the daemon busy.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use dthrottle::{Stats, Throttle, TopBucket};

/// The maximum number of buckets in an answer to `top`.
pub(crate) const MAX_TOP: usize = 1000;
/// A result is cached for this many times the duration of its scan, so scans take at most a
/// twentieth of the time.
const KEEP_FACTOR: u32 = 20;

#[derive(Default)]
pub(crate) struct ScanCache {
    stats: Cached<Stats>,
    top: Cached<Vec<TopBucket>>,
}

/// The result of a scan, and until when it is valid.
struct Cached<T>(Mutex<Option<(T, Instant)>>);

impl<T> Default for Cached<T> {
    fn default() -> Cached<T> {
        Cached(Mutex::new(None))
    }
}

impl ScanCache {
    /// The counts of the throttle. The numbers of decisions are always current.
    pub(crate) fn stats(&self, throttle: &Throttle) -> Stats {
        let mut stats = self.stats.get_or_scan(Instant::now, || throttle.stats());
        (stats.allowed, stats.refused) = throttle.decisions();
        stats
    }

    /// The buckets with the least units left.
    pub(crate) fn top(&self, throttle: &Throttle, count: usize) -> Vec<TopBucket> {
        let mut top = self.top.get_or_scan(Instant::now, || throttle.top(MAX_TOP));
        top.truncate(count);
        top
    }
}

impl<T: Clone> Cached<T> {
    fn get_or_scan(&self, now: impl Fn() -> Instant, scan: impl FnOnce() -> T) -> T {
        // A thread that comes during a scan waits for its result.
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
    fn a_result_is_cached_in_proportion_to_the_duration_of_its_scan() {
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
