//! How long to wait before the next attempt.

use std::time::Duration;

const FIRST_DELAY: Duration = Duration::from_millis(50);
const MAX_DELAY: Duration = Duration::from_secs(5);
/// What has worked for so long may be tried again soon.
const STABLE_NS: u64 = 10_000_000_000;

/// Waits that double.
#[derive(Debug)]
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff(FIRST_DELAY)
    }

    /// How long to wait this time.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let delay = self.0;
        self.0 = (delay * 2).min(MAX_DELAY);
        delay
    }

    /// The same after something that had worked for so many nanoseconds.
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
    fn waits_double_up_to_a_limit_and_start_anew_after_what_worked() {
        let mut backoff = Backoff::new();
        let delays: Vec<u128> = (0..9).map(|_| backoff.next_delay().as_millis()).collect();
        assert_eq!(delays, [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(backoff.next_delay_after(STABLE_NS - 1).as_millis(), 5000);
        assert_eq!(backoff.next_delay_after(STABLE_NS).as_millis(), 50);
        assert_eq!(backoff.next_delay().as_millis(), 100);
    }
}
