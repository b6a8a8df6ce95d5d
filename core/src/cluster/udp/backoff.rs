//! Exponential backoff between attempts.

use std::time::Duration;

const FIRST_DELAY: Duration = Duration::from_millis(50);
const MAX_DELAY: Duration = Duration::from_secs(5);
/// After this uptime, in nanoseconds, the delay starts again at the first value.
const STABLE_NS: u64 = 10_000_000_000;

/// The next delay, which doubles with each attempt.
#[derive(Debug)]
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff(FIRST_DELAY)
    }

    /// Returns the delay before the next attempt.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let delay = self.0;
        self.0 = (delay * 2).min(MAX_DELAY);
        delay
    }

    /// Like `next_delay`, after a failure of something that had run for `uptime_ns`.
    pub(crate) fn next_delay_after(&mut self, uptime_ns: u64) -> Duration {
        if uptime_ns >= STABLE_NS {
            self.0 = FIRST_DELAY;
        }
        self.next_delay()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_maximum_and_restart_after_a_long_uptime() {
        let mut backoff = Backoff::new();
        let delays: Vec<u128> = (0..9).map(|_| backoff.next_delay().as_millis()).collect();
        assert_eq!(delays, [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(backoff.next_delay_after(STABLE_NS - 1).as_millis(), 5000);
        assert_eq!(backoff.next_delay_after(STABLE_NS).as_millis(), 50);
        assert_eq!(backoff.next_delay().as_millis(), 100);
    }
}
