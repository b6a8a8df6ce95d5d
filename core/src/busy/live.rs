//! The arithmetic of the live throttle: the limit is a pure function of the last cut and the time
//! since then.
//!
//! A cut halves the rate of requests, at most once per second. The limit then stays constant for a
//! while, and at the start of that time no requests are sent. After that it quickly recovers to
//! near the last good rate, and continues in small steps beyond it. If there is still no busy
//! response, it grows exponentially until it has no effect and is removed. The first cut shows
//! little about the capacity of the service, so the limit grows exponentially at once after it.

use super::meter::SECOND;

/// A limit this high counts as no limit.
const MAX_LIMIT: f64 = 1e7;
/// The shortest time between two cuts.
pub(crate) const MIN_CUT_INTERVAL_NS: u64 = SECOND;
/// How long the limit stays constant after a cut.
const HOLD_LIMIT_NS: u64 = 700_000_000;
/// How long no requests are sent after a cut. A server that counts in whole seconds has nothing
/// left for the rest of its current second.
pub(crate) const SILENCE_NS: u64 = 300_000_000;
/// If more than this share of the limit was sent, the limit is considered to be what restricted the
/// requests. A limit that doubles each second was, on average over its last second, 0.7 of its
/// current value.
const USED_SHARE: f64 = 0.6;

/// The settings of the live throttle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Live {
    /// The share of the rate that a cut leaves.
    pub cut: f64,
    /// The share of the last good rate up to which the limit recovers quickly.
    pub near: f64,
    /// The share of the last good rate by which the limit then increases per second.
    pub step: f64,
    /// The number of seconds for which it increases in steps.
    pub patience: f64,
    /// The factor by which the limit grows per second while it recovers quickly: below `near`, and
    /// after `patience`.
    pub growth: f64,
}

impl Default for Live {
    fn default() -> Live {
        // Chosen by the model in `core/tests/busy`.
        Live { cut: 0.5, near: 0.85, step: 0.03, patience: 5.0, growth: 4.0 }
    }
}

/// The last cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    pub(crate) at: u64,
    /// The limit that the cut left.
    limit: f32,
    /// The rate that the service could serve; zero if it is not known.
    good: f32,
}

impl Cut {
    /// Reads a stored cut. Zero means that there was none. Any other bits give plausible limits.
    pub(crate) fn from_bits(bits: u128, floor: f64) -> Option<Cut> {
        let sane = |bits: u128, least: f32| match f32::from_bits(bits as u32) {
            value if value.is_nan() => least,
            value => value.clamp(least, MAX_LIMIT as f32),
        };
        let (limit, good) = (sane(bits >> 32, floor as f32), sane(bits, 0.0));
        (bits != 0).then_some(Cut { at: (bits >> 64) as u64, limit, good })
    }

    /// Returns true if the cut was stored before the clock was set back.
    pub(crate) fn is_ahead(self, now: u64) -> bool {
        self.at > now.saturating_add(MIN_CUT_INTERVAL_NS)
    }

    /// The same cut at another time.
    pub(crate) fn with_time(self, at: u64) -> Cut {
        Cut { at, ..self }
    }

    pub(crate) fn to_bits(self) -> u128 {
        let limits = u64::from(self.limit.to_bits()) << 32 | u64::from(self.good.to_bits());
        u128::from(self.at) << 64 | u128::from(limits)
    }
}

impl Live {
    /// Returns the limit `after_ns` after a cut, or `None` if there is none any more.
    pub(crate) fn limit(&self, cut: Cut, after_ns: u64) -> Option<f64> {
        let limit = f64::from(cut.limit);
        let Some(quick_ns) = after_ns.checked_sub(HOLD_LIMIT_NS) else { return Some(limit) };
        let quick = quick_ns as f64 / SECOND as f64;
        let grown = |from: f64, seconds: f64| {
            Some(from * self.growth.powf(seconds)).filter(|limit| *limit < MAX_LIMIT)
        };
        if cut.good == 0.0 {
            return grown(limit, quick);
        }
        let near = f64::from(cut.good) * self.near;
        // Seconds since the limit reached `near`.
        let steady = quick - (near / limit).max(1.0).ln() / self.growth.ln();
        if steady < 0.0 {
            return grown(limit, quick);
        }
        let step = f64::from(cut.good) * self.step;
        let slow = near.max(limit) + step * steady.min(self.patience);
        // Grows slowly at first: after half a second the exponent is a sixth of a second, after
        // three seconds more than two.
        let after = (steady - self.patience).max(0.0);
        grown(slow, after * after / (after + 1.0))
    }

    /// Returns the cut that a busy response causes.
    pub(crate) fn cut(&self, before: Option<Cut>, now: u64, seen: Observation, floor: f64) -> Cut {
        let Observation { sent, good, limit, from_peer, unpaused_ns } = seen;
        // Each node sees only its share of the requests, and small numbers vary. So a node that
        // learns of the busy response from a peer makes a smaller cut, and uses its limit as its
        // rate unless it sent much less.
        let (left, used) = match from_peer {
            true => (self.cut.sqrt(), USED_SHARE / 2.0),
            false => (self.cut, USED_SHARE),
        };
        let unpaused = unpaused_ns.min(SECOND) as f64 / SECOND as f64;
        // If the limit restricted the requests, it is closer to the current rate than the average
        // of the last second.
        let rate = limit.filter(|limit| sent >= limit * unpaused * used).unwrap_or(sent);
        let share = good.map_or(1.0, |good| (good / sent).min(1.0));
        let good = match before {
            // The service may have been called for less than a second, too short to measure a rate.
            None => 0.0,
            // The service serves nothing now, so its earlier rate is the best estimate for later.
            Some(before) if good == Some(0.0) => before.good.into(),
            // A short failure of the service must not reduce the estimate to almost zero.
            Some(before) => (rate * share).max(f64::from(before.good) * self.cut),
        };
        let limit = (rate * left).clamp(floor, MAX_LIMIT) as f32;
        Cut { at: now, limit, good: good.min(MAX_LIMIT) as f32 }
    }
}

/// What was observed in the second before a busy response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation {
    /// Requests sent.
    pub(crate) sent: f64,
    /// Good responses. `None` if the application does not report them.
    pub(crate) good: Option<f64>,
    /// The current limit, if there is one.
    pub(crate) limit: Option<f64>,
    /// Whether a peer reported the busy response.
    pub(crate) from_peer: bool,
    /// Time since the last pause, in nanoseconds.
    pub(crate) unpaused_ns: u64,
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
    fn any_stored_bits_give_a_limit_between_the_floor_and_the_maximum() {
        for word in [f32::NAN, f32::INFINITY, -1.0, f32::MIN_POSITIVE] {
            let cut = Cut { at: 1, limit: word, good: word };
            let cut = Cut::from_bits(cut.to_bits(), 2.0).unwrap();
            assert!((2.0..=MAX_LIMIT).contains(&limit(cut, 0.0)), "{word}: {cut:?}");
            assert!(cut.good >= 0.0);
            assert!(limit(cut, 1e4).is_infinite(), "the limit disappears after a long time");
        }
    }

    fn seen(sent: f64, good: Option<f64>) -> Observation {
        Observation { sent, good, limit: None, from_peer: false, unpaused_ns: SECOND }
    }

    #[test]
    fn the_limit_halves_stays_recovers_grows_in_steps_and_then_multiplies() {
        let first = LIVE.cut(None, 0, seen(1.0, None), 1.0);
        let cut = LIVE.cut(Some(first), 0, seen(100.0, Some(100.0)), 1.0);
        let near = (90.0_f64 / 50.0).log2();
        let expected = [
            (0.0, 50.0),
            (0.7, 50.0),
            (1.2, 50.0 * 2_f64.sqrt()),
            (0.7 + near, 90.0),
            (0.7 + near + 2.0, 94.0),
            (0.7 + near + 4.0, 98.0),
            (0.7 + near + 5.0, 98.0 * 2_f64.sqrt()),
            (0.7 + near + 6.0, 98.0 * 2_f64.powf(4.0 / 3.0)),
        ];
        for (seconds, expected) in expected {
            let limit = limit(cut, seconds);
            assert!((limit - expected).abs() < 0.01, "after {seconds} s: {limit}");
        }
        assert!(limit(cut, 60.0).is_infinite());
    }

    #[test]
    fn after_the_first_cut_the_limit_multiplies_immediately() {
        let first = LIVE.cut(None, 0, seen(20.0, Some(20.0)), 1.0);
        assert_eq!([0.0, 0.7, 1.7, 3.7].map(|after| limit(first, after)), [10.0, 10.0, 20.0, 80.0]);
    }

    #[test]
    fn the_last_good_rate_follows_from_good_responses() {
        let before = Cut { at: 0, limit: 50.0, good: 40.0 };
        let next = |seen| {
            let cut = LIVE.cut(Some(before), 0, seen, 1.0);
            (cut.limit, cut.good)
        };
        assert_eq!(next(seen(100.0, Some(60.0))), (50.0, 60.0));
        assert_eq!(
            next(seen(50.0, Some(0.0))),
            (25.0, 40.0),
            "without good responses, the earlier rate is kept"
        );
        assert_eq!(next(seen(50.0, Some(1.0))), (25.0, 20.0), "one cut at most halves the rate");
        assert_eq!(next(seen(50.0, None)), (25.0, 50.0), "good responses are not reported");
        assert_eq!(next(seen(50.0, Some(1e9))), (25.0, 50.0), "capped at the requests");
        let used = Observation { limit: Some(70.0), ..seen(50.0, Some(45.0)) };
        assert_eq!(next(used), (35.0, 63.0), "the current limit counts as the rate");
        let unused = Observation { limit: Some(500.0), ..seen(50.0, Some(45.0)) };
        assert_eq!(next(unused), (25.0, 45.0));
        let reported = Observation { limit: Some(70.0), from_peer: true, ..seen(30.0, Some(30.0)) };
        assert_eq!(
            next(reported),
            (70.0 * 0.5_f32.sqrt(), 70.0),
            "a smaller cut, computed from the limit"
        );
    }

    #[test]
    fn a_cut_does_not_go_below_the_floor() {
        let cut = LIVE.cut(None, 0, seen(0.0, Some(0.0)), 3.0);
        assert_eq!((cut.limit, cut.good), (3.0, 0.0));
        let cut = LIVE.cut(Some(cut), 0, seen(0.0, Some(7.0)), 3.0);
        assert_eq!(cut.limit, 3.0);
    }
}
