//! How often something happens: a sliding measure over one second, in one word.
//!
//! The count of this second and the share of the last one that is not yet a second ago. A rate
//! above a million a second counts as a million.

/// Nanoseconds of a second: the width of the measure.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// From above: which second (24 bits, so that it comes round after half a year), how often in it,
/// how often in the one before. Zero: never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meter(pub(crate) u64);

const COUNT_BITS: u32 = 20;
const MOST: u64 = (1 << COUNT_BITS) - 1;
const SECOND_BITS: u32 = 24;
const SECONDS: u64 = (1 << SECOND_BITS) - 1;
/// How far back time may go before it counts as another time altogether.
const BACK: u64 = 2;

impl Meter {
    /// Whether it never counted anything.
    pub(crate) fn is_new(self) -> bool {
        self.0 == 0
    }

    /// One more.
    pub(crate) fn count(self, now: u64) -> Meter {
        let (second, this, last, _) = self.at(now);
        Meter(second << (2 * COUNT_BITS) | (this + 1).min(MOST) << COUNT_BITS | last)
    }

    /// How often in the last second.
    pub(crate) fn rate(self, now: u64) -> f64 {
        let (_, this, last, passed) = self.at(now);
        this as f64 + last as f64 * (1.0 - passed as f64 / SECOND as f64)
    }

    /// How often since this second of the clock began.
    pub(crate) fn this_second(self, now: u64) -> u64 {
        self.at(now).1
    }

    /// The second, the counts of it and of the one before, and how much of it has passed. Where
    /// time goes back a little it stands still, where it goes back far everything begins anew.
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
    fn a_steady_rate_is_measured_at_any_moment() {
        let step = SECOND / 100;
        let meter = counted((0..350).map(|i| i * step));
        for ahead in [0, step / 2, step] {
            let rate = meter.rate(349 * step + ahead);
            assert!((rate - 100.0).abs() < 2.0, "{rate}");
        }
        assert_eq!(meter.rate(5 * SECOND), 0.0, "nothing for a second");
    }

    #[test]
    fn it_slides() {
        let meter = counted([SECOND / 2; 100]);
        for (now, rate) in [(5, 100.0), (10, 100.0), (15, 50.0), (20, 0.0)] {
            assert_eq!(meter.rate(now * SECOND / 10), rate, "at {now} tenths");
        }
    }

    #[test]
    fn time_that_goes_back_neither_stops_it_nor_counts_for_ever() {
        let at = 100 * SECOND;
        let meter = counted([at; 10]);
        assert_eq!(meter.count(at - SECOND).rate(at), 11.0, "a little: it stands still");
        assert_eq!(meter.count(SECOND).rate(SECOND), 1.0, "far: it begins anew");
        assert_eq!(meter.rate(u64::MAX), 0.0);
    }

    #[test]
    fn it_ends_at_a_million() {
        let mut meter = Meter::default();
        for _ in 0..=MOST + 5 {
            meter = meter.count(7);
        }
        assert_eq!((meter.rate(7), meter.this_second(7)), (MOST as f64, MOST));
    }

    #[test]
    fn it_comes_round() {
        let end = (SECONDS + 1) * SECOND;
        let meter = counted([end - 1, end - 1]);
        assert_eq!(meter.rate(end), 2.0);
        assert!(!meter.is_new() && Meter::default().is_new());
    }
}
