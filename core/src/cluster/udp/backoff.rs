//! How long to wait before the next attempt.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);
/// What has worked for so long may be tried again soon.
const PROVEN: u64 = 10_000_000_000;

/// Waits that double.
#[derive(Debug)]
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff(FIRST)
    }

    /// How long to wait this time.
    pub(crate) fn wait(&mut self) -> Duration {
        let wait = self.0;
        self.0 = (wait * 2).min(LONGEST);
        wait
    }

    /// The same after something that had worked for so many nanoseconds.
    pub(crate) fn wait_after(&mut self, worked: u64) -> Duration {
        if worked >= PROVEN {
            self.0 = FIRST;
        }
        self.wait()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_start_anew_after_what_worked() {
        let mut backoff = Backoff::new();
        let waits: Vec<u128> = (0..9).map(|_| backoff.wait().as_millis()).collect();
        assert_eq!(waits, [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(backoff.wait_after(PROVEN - 1).as_millis(), 5000);
        assert_eq!(backoff.wait_after(PROVEN).as_millis(), 50);
        assert_eq!(backoff.wait().as_millis(), 100);
    }
}
