//! Looks at the whole table, which take long where it is full. What was seen is kept for a while, so
//! that nobody can keep the daemon busy by asking again and again.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use dthrottle::{Stats, Throttle, TopBucket};

/// The most that `top` tells.
pub(crate) const MOST_TOP: usize = 1000;
/// Kept for so many times as long as the look took: at most a twentieth of the time goes into looks.
const KEPT: u32 = 20;

#[derive(Default)]
pub(crate) struct Looks {
    stats: Look<Stats>,
    top: Look<Vec<TopBucket>>,
}

/// What was seen, and until when it is good.
struct Look<T>(Mutex<Option<(T, Instant)>>);

impl<T> Default for Look<T> {
    fn default() -> Look<T> {
        Look(Mutex::new(None))
    }
}

impl Looks {
    /// Counts of the throttle; those of decisions are of now.
    pub(crate) fn stats(&self, throttle: &Throttle) -> Stats {
        let mut stats = self.stats.look(Instant::now, || throttle.stats());
        (stats.allowed, stats.refused) = throttle.decisions();
        stats
    }

    /// The buckets used most.
    pub(crate) fn top(&self, throttle: &Throttle, count: usize) -> Vec<TopBucket> {
        let mut top = self.top.look(Instant::now, || throttle.top(MOST_TOP));
        top.truncate(count);
        top
    }
}

impl<T: Clone> Look<T> {
    fn look(&self, now: impl Fn() -> Instant, look: impl FnOnce() -> T) -> T {
        // Who comes while another looks waits for what it sees.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let start = now();
        if let Some((seen, until)) = &*kept
            && start < *until
        {
            return seen.clone();
        }
        let seen = look();
        let end = now();
        let took = end.saturating_duration_since(start).min(Duration::from_secs(1));
        *kept = Some((seen.clone(), end + took * KEPT));
        seen
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_look_is_kept_for_as_long_as_it_is_dear() {
        let look = Look::default();
        let now = Cell::new(Instant::now());
        let looks = Cell::new(0);
        let wait = |ms: u64| now.set(now.get() + Duration::from_millis(ms));
        let ask = || {
            look.look(
                || now.get(),
                || {
                    looks.set(looks.get() + 1);
                    wait(10);
                    looks.get()
                },
            )
        };
        assert_eq!(ask(), 1);
        wait(199);
        assert_eq!(ask(), 1);
        wait(1);
        assert_eq!((ask(), looks.get()), (2, 2));
    }
}
