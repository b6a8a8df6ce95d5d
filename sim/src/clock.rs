//! The clock of one node. It may run fast or slow and jump ahead, but never goes back, like the
//! system's monotonic clock.

use crate::Ns;

const MILLION: i128 = 1_000_000;

/// A node's own time as a function of virtual time.
#[derive(Clone, Copy, Debug)]
pub struct LocalClock {
    /// A virtual time at which the local time is known.
    anchor: Ns,
    local: Ns,
    drift_ppm: i64,
}

impl LocalClock {
    /// Creates a clock that shows `local` at virtual time zero and gains `drift_ppm` millionths.
    pub fn new(local: Ns, drift_ppm: i64) -> LocalClock {
        LocalClock { anchor: 0, local, drift_ppm }
    }

    /// Returns the local time at a virtual time.
    pub fn local(&self, now: Ns) -> Ns {
        let passed = i128::from(now.saturating_sub(self.anchor));
        self.local + (passed * (MILLION + i128::from(self.drift_ppm)) / MILLION) as Ns
    }

    /// Returns the first virtual time at which the clock shows this local time.
    pub fn virtual_time(&self, local: Ns) -> Ns {
        let passed = i128::from(local.saturating_sub(self.local)) * MILLION;
        let speed = MILLION + i128::from(self.drift_ppm);
        self.anchor + ((passed + speed - 1) / speed) as Ns
    }

    /// Makes the clock jump ahead.
    pub fn jump(&mut self, now: Ns, by: Ns) {
        *self = LocalClock { anchor: now, local: self.local(now) + by, ..*self };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SEC;

    #[test]
    fn virtual_time_returns_the_first_time_at_which_the_clock_shows_the_local_time() {
        for ppm in [-500_000, -100, 0, 77, 500_000] {
            let mut clock = LocalClock::new(12_345, ppm);
            clock.jump(3 * SEC, 7 * SEC);
            for local in [10, 12 * SEC, 20 * SEC + 1, 1000 * SEC + 17] {
                let at = clock.virtual_time(local);
                assert!(clock.local(at) >= local, "{ppm} {local}");
                assert!(at == 3 * SEC || clock.local(at - 1) < local, "{ppm} {local}");
            }
        }
    }

    #[test]
    fn drift_and_jumps_add_up() {
        let mut clock = LocalClock::new(0, 100);
        assert_eq!(clock.local(10 * SEC), 10 * SEC + 1_000_000);
        clock.jump(10 * SEC, 5 * SEC);
        assert_eq!(clock.local(20 * SEC), 25 * SEC + 2_000_000);
    }
}
