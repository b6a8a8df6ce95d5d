//! The arithmetic of the live throttle: the limit is a pure function of the last cut and the time
//! since.
//!
//! A cut halves the rate of requests, at most once a second. The limit stays there for a second,
//! comes back quickly to near the last good rate, goes on in small steps beyond it, and when that
//! has gone well for a while it multiplies, until it is none.

use super::meter::SECOND;

/// Where a limit is none: more than anybody sends.
const HIGHEST: f64 = 1e7;
/// Between two cuts, and how long the limit stays where a cut has put it.
pub(crate) const HOLD_NS: u64 = SECOND;

/// The settings of the live throttle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Live {
    /// What a cut leaves of the rate.
    pub cut: f64,
    /// Up to which share of the last good rate the limit comes back quickly.
    pub near: f64,
    /// By which share of it the limit then goes up in a second.
    pub step: f64,
    /// For so many seconds.
    pub patience: f64,
    /// What the limit multiplies by in a second where it is quick: below `near`, and after
    /// `patience`.
    pub growth: f64,
}

impl Default for Live {
    fn default() -> Live {
        Live { cut: 0.5, near: 0.9, step: 0.04, patience: 4.0, growth: 3.0 }
    }
}

/// The last cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    pub(crate) at: u64,
    /// What it left.
    limit: f32,
    /// The rate that the service could bear.
    good: f32,
}

impl Cut {
    /// As it was stored; zero: there was none. Whatever the words are, the limits make sense.
    pub(crate) fn from_bits(bits: u128, floor: f64) -> Option<Cut> {
        let sane = |bits: u128| {
            let value = f32::from_bits(bits as u32);
            if value.is_nan() { floor as f32 } else { value.clamp(floor as f32, HIGHEST as f32) }
        };
        let cut =
            Cut { at: (bits >> 64) as u64, limit: sane(bits >> 32), good: sane(bits) };
        (bits != 0).then_some(cut)
    }

    /// The same at another time.
    pub(crate) fn moved(self, at: u64) -> Cut {
        Cut { at, ..self }
    }

    pub(crate) fn to_bits(self) -> u128 {
        let limits = u64::from(self.limit.to_bits()) << 32 | u64::from(self.good.to_bits());
        u128::from(self.at) << 64 | u128::from(limits)
    }
}

impl Live {
    /// The limit so long after a cut; nothing: none.
    pub(crate) fn limit(&self, cut: Cut, after_ns: u64) -> Option<f64> {
        let limit = f64::from(cut.limit);
        let Some(quick_ns) = after_ns.checked_sub(HOLD_NS) else { return Some(limit) };
        let quick = quick_ns as f64 / SECOND as f64;
        let near = f64::from(cut.good) * self.near;
        // Seconds until it is near.
        let until_near = (near / limit).max(1.0).ln() / self.growth.ln();
        let Some(steady) = Some(quick - until_near).filter(|steady| *steady > 0.0) else {
            return Some(limit * self.growth.powf(quick));
        };
        let step = f64::from(cut.good) * self.step;
        let slow = near.max(limit) + step * steady.min(self.patience);
        let reached = slow * self.growth.powf((steady - self.patience).max(0.0));
        (reached < HIGHEST).then_some(reached)
    }

    /// What a busy answer makes of it, by the rates of requests sent and of good answers. Where
    /// nobody says which answers are good, all were until now.
    pub(crate) fn cut(
        &self,
        before: Option<Cut>,
        now: u64,
        sent: f64,
        good: Option<f64>,
        floor: f64,
    ) -> Cut {
        let earlier = before.map(|cut| f64::from(cut.good));
        let good = match (good, earlier) {
            (None, _) | (Some(0.0), None) => sent,
            // Out of order altogether: what it could bear before is the best guess for later.
            (Some(0.0), Some(earlier)) => earlier,
            // So that a moment in which it goes out of order does not look like what it can bear.
            (Some(good), earlier) => good.min(sent).max(earlier.unwrap_or(0.0) * self.cut),
        };
        let limit = (sent * self.cut).clamp(floor, HIGHEST) as f32;
        Cut { at: now, limit, good: good.clamp(floor, HIGHEST) as f32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVE: Live = Live { cut: 0.5, near: 0.9, step: 0.02, patience: 4.0, growth: 2.0 };

    fn limit(cut: Cut, seconds: f64) -> f64 {
        LIVE.limit(cut, (seconds * 1e9) as u64).unwrap_or(f64::INFINITY)
    }

    #[test]
    fn a_cut_is_read_as_it_was_written() {
        let cut = Cut { at: 1 << 60, limit: 12.5, good: 25.0 };
        assert_eq!(Cut::from_bits(cut.to_bits(), 1.0), Some(cut));
        assert_eq!(Cut::from_bits(0, 1.0), None);
    }

    #[test]
    fn nonsense_is_between_the_floor_and_the_highest() {
        for word in [f32::NAN, f32::INFINITY, -1.0, f32::MIN_POSITIVE] {
            let cut = Cut { at: 1, limit: word, good: word };
            let cut = Cut::from_bits(cut.to_bits(), 2.0).unwrap();
            assert!((2.0..=HIGHEST).contains(&limit(cut, 0.0)), "{word}: {cut:?}");
            assert!(limit(cut, 1e4).is_infinite(), "it recovers");
        }
    }

    #[test]
    fn it_halves_stays_comes_near_goes_on_and_multiplies() {
        let cut = LIVE.cut(None, 0, 100.0, Some(100.0), 1.0);
        let near = (90.0_f64 / 50.0).log2();
        let expected = [
            (0.0, 50.0),
            (1.0, 50.0),
            (1.5, 50.0 * 2_f64.sqrt()),
            (1.0 + near, 90.0),
            (1.0 + near + 2.0, 94.0),
            (1.0 + near + 4.0, 98.0),
            (1.0 + near + 5.0, 196.0),
            (1.0 + near + 7.0, 784.0),
        ];
        for (seconds, expected) in expected {
            let limit = limit(cut, seconds);
            assert!((limit - expected).abs() < 0.01, "after {seconds} s: {limit}");
        }
        assert!(limit(cut, 60.0).is_infinite());
    }

    #[test]
    fn good_answers_say_where_near_is() {
        let cut = LIVE.cut(None, 0, 100.0, Some(40.0), 1.0);
        assert_eq!((cut.limit, cut.good), (50.0, 40.0));
        let down = LIVE.cut(Some(cut), 0, 50.0, Some(0.0), 1.0);
        assert_eq!((down.limit, down.good), (25.0, 40.0), "none at all: as before");
        let silent = LIVE.cut(Some(cut), 0, 50.0, None, 1.0);
        assert_eq!((silent.limit, silent.good), (25.0, 50.0), "nobody says");
        let worse = LIVE.cut(Some(cut), 0, 50.0, Some(1.0), 1.0);
        assert_eq!(worse.good, 20.0, "not less than half at once");
        let too_many = LIVE.cut(None, 0, 10.0, Some(1e9), 1.0);
        assert_eq!(too_many.good, 10.0);
    }

    #[test]
    fn the_floor_holds() {
        let cut = LIVE.cut(None, 0, 0.0, None, 3.0);
        assert_eq!((cut.limit, cut.good), (3.0, 3.0));
    }
}
