//! A rate over a sliding window of one second, in one word.
//!
//! The rate is the count of the current second plus the part of the previous second's count that is
//! less than a second ago. A rate above a million per second counts as a million.

/// Nanoseconds per second, which is the width of the window.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// From the highest bit: the second (24 bits, which wrap after half a year), the count in it, and
/// the count in the second before. Zero means that nothing was counted yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meter(pub(crate) u64);

const COUNT_BITS: u32 = 20;
const MOST: u64 = (1 << COUNT_BITS) - 1;
const SECOND_BITS: u32 = 24;
const SECONDS: u64 = (1 << SECOND_BITS) - 1;
/// Seconds by which time may go back before the counts are discarded.
const BACK: u64 = 2;

impl Meter {
    /// Returns true if nothing was counted yet.
    pub(crate) fn is_new(self) -> bool {
        self.0 == 0
    }

    /// Counts one event.
    pub(crate) fn count(self, now: u64) -> Meter {
        let (second, this, last, _) = self.at(now);
        Meter(second << (2 * COUNT_BITS) | (this + 1).min(MOST) << COUNT_BITS | last)
    }

    /// Returns the number of events in the last second.
    pub(crate) fn rate(self, now: u64) -> f64 {
        let (_, this, last, passed) = self.at(now);
        this as f64 + last as f64 * (1.0 - passed as f64 / SECOND as f64)
    }

    /// Returns the number of events since the current second of the clock began.
    pub(crate) fn this_second(self, now: u64) -> u64 {
        self.at(now).1
    }

    /// Returns the second, the counts in it and in the one before, and the nanoseconds of it that
    /// have passed. If time went back a little, the stored second stays current; if it went back
    /// far, the counts are zero.
    fn at(self, now: u64) -> (u64, u64, u64, u64) {
        let (second, passed) = ((now / SECOND) & SECONDS, now % SECOND);
        let stored = self.0 >> (2 * COUNT_BITS);
        let (this, last) = (self.0 >> COUNT_BITS & MOST, self.0 & MOST);
        match second.wrapping_sub(stored) & SECONDS {
            0 => (second, this, last, passed),
            1 => (second, 0, this, passed),
            ahead if ahead > SECONDS - BACK => (stored, this, last, 0),
            _ => (second, 0, 0, passed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(times: impl IntoIterator<Item = u64>) -> Meter {
        times.into_iter().fold(Meter::default(), Meter::count)
    }

    #[test]
    fn a_steady_rate_is_measured_correctly_at_any_time() {
        let step = SECOND / 100;
        let meter = counted((0..350).map(|i| i * step));
        for ahead in [0, step / 2, step] {
            let rate = meter.rate(349 * step + ahead);
            assert!((rate - 100.0).abs() < 2.0, "{rate}");
        }
        assert_eq!(meter.rate(5 * SECOND), 0.0, "no events for a second");
    }

    #[test]
    fn the_window_slides() {
        let meter = counted([SECOND / 2; 100]);
        for (now, rate) in [(5, 100.0), (10, 100.0), (15, 50.0), (20, 0.0)] {
            assert_eq!(meter.rate(now * SECOND / 10), rate, "at {now} tenths");
        }
    }

    #[test]
    fn events_are_counted_after_time_went_back() {
        let at = 100 * SECOND;
        let meter = counted([at; 10]);
        assert_eq!(
            meter.count(at - SECOND).rate(at),
            11.0,
            "a little: counted in the stored second"
        );
        assert_eq!(meter.count(SECOND).rate(SECOND), 1.0, "far: the counts are discarded");
        assert_eq!(meter.rate(u64::MAX), 0.0);
    }

    #[test]
    fn the_rate_is_limited_to_a_million() {
        let mut meter = Meter::default();
        for _ in 0..=MOST + 5 {
            meter = meter.count(7);
        }
        assert_eq!((meter.rate(7), meter.this_second(7)), (MOST as f64, MOST));
    }

    #[test]
    fn the_number_of_the_second_wraps() {
        let end = (SECONDS + 1) * SECOND;
        let meter = counted([end - 1, end - 1]);
        assert_eq!(meter.rate(end), 2.0);
        assert!(!meter.is_new() && Meter::default().is_new());
    }
}
