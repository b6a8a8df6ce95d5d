//! The arithmetic of the live throttle: the limit is a pure function of the last cut and the time
//! since.
//!
//! A cut halves the rate of requests, at most once a second. The limit stays there for a while, at
//! the beginning of which nothing is sent, comes back quickly to near the last good rate, goes on in
//! small steps beyond it, and when that has gone well for a while it multiplies, until it is none.
//! After the first cut, of which little can be learnt, it multiplies at once.

use super::meter::SECOND;

/// Where a limit is none: more than anybody sends.
const MAX_LIMIT: f64 = 1e7;
/// Between two cuts at least.
pub(crate) const MIN_CUT_INTERVAL_NS: u64 = SECOND;
/// How long the limit stays where a cut has put it.
const HOLD_LIMIT_NS: u64 = 700_000_000;
/// How long nothing is sent after a cut: a server that counts in seconds has nothing left for the
/// rest of its own.
pub(crate) const SILENCE_NS: u64 = 300_000_000;
/// The share of the limit from which on it is what holds requests back. A limit that doubles was,
/// over its last second, 0.7 of what it is.
const USED_SHARE: f64 = 0.6;

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
        // Chosen by the model in `core/tests/busy`.
        Live { cut: 0.5, near: 0.85, step: 0.03, patience: 5.0, growth: 4.0 }
    }
}

/// The last cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    pub(crate) at: u64,
    /// What it left.
    limit: f32,
    /// The rate that the service could bear; zero: not known.
    good: f32,
}

impl Cut {
    /// As it was stored; zero: there was none. Whatever the words are, the limits make sense.
    pub(crate) fn from_bits(bits: u128, floor: f64) -> Option<Cut> {
        let sane = |bits: u128, least: f32| match f32::from_bits(bits as u32) {
            value if value.is_nan() => least,
            value => value.clamp(least, MAX_LIMIT as f32),
        };
        let (limit, good) = (sane(bits >> 32, floor as f32), sane(bits, 0.0));
        (bits != 0).then_some(Cut { at: (bits >> 64) as u64, limit, good })
    }

    /// Whether it is left over from a clock that was set back.
    pub(crate) fn is_ahead(self, now: u64) -> bool {
        self.at > now.saturating_add(MIN_CUT_INTERVAL_NS)
    }

    /// The same at another time.
    pub(crate) fn with_time(self, at: u64) -> Cut {
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
        let Some(quick_ns) = after_ns.checked_sub(HOLD_LIMIT_NS) else { return Some(limit) };
        let quick = quick_ns as f64 / SECOND as f64;
        let grown = |from: f64, seconds: f64| {
            Some(from * self.growth.powf(seconds)).filter(|limit| *limit < MAX_LIMIT)
        };
        if cut.good == 0.0 {
            return grown(limit, quick);
        }
        let near = f64::from(cut.good) * self.near;
        // Seconds since it is near.
        let steady = quick - (near / limit).max(1.0).ln() / self.growth.ln();
        if steady < 0.0 {
            return grown(limit, quick);
        }
        let step = f64::from(cut.good) * self.step;
        let slow = near.max(limit) + step * steady.min(self.patience);
        // Gently at first: half a second on it is a sixth of a second, three seconds on it is two.
        let after = (steady - self.patience).max(0.0);
        grown(slow, after * after / (after + 1.0))
    }

    /// What a busy answer makes of it.
    pub(crate) fn cut(&self, before: Option<Cut>, now: u64, seen: Observation, floor: f64) -> Cut {
        let Observation { sent, good, limit, from_peer, unpaused_ns } = seen;
        // Each node sees only its share of what was sent, and few are few by chance: whoever only
        // heard of it goes half as far, and takes its limit for what it sends unless it is far off.
        let (left, used) = match from_peer {
            true => (self.cut.sqrt(), USED_SHARE / 2.0),
            false => (self.cut, USED_SHARE),
        };
        let open = unpaused_ns.min(SECOND) as f64 / SECOND as f64;
        // Where the limit is used up it tells the rate of this moment, not of the last second.
        let rate = limit.filter(|limit| sent >= limit * open * used).unwrap_or(sent);
        let share = good.map_or(1.0, |good| (good / sent).min(1.0));
        let good = match before {
            // It may have been early in the first second, of which a rate says little.
            None => 0.0,
            // Out of order altogether: what it could bear before is the best guess for later.
            Some(before) if good == Some(0.0) => before.good.into(),
            // A moment in which it goes out of order must not look like what it can bear.
            Some(before) => (rate * share).max(f64::from(before.good) * self.cut),
        };
        let limit = (rate * left).clamp(floor, MAX_LIMIT) as f32;
        Cut { at: now, limit, good: good.min(MAX_LIMIT) as f32 }
    }
}

/// The last second, as a busy answer finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation {
    /// Requests.
    pub(crate) sent: f64,
    /// Good answers; nothing: nobody says which are good.
    pub(crate) good: Option<f64>,
    /// The limit at this moment, if there is one.
    pub(crate) limit: Option<f64>,
    /// Another node was told.
    pub(crate) from_peer: bool,
    /// Since the last pause.
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
    fn nonsense_is_between_the_floor_and_the_highest() {
        for word in [f32::NAN, f32::INFINITY, -1.0, f32::MIN_POSITIVE] {
            let cut = Cut { at: 1, limit: word, good: word };
            let cut = Cut::from_bits(cut.to_bits(), 2.0).unwrap();
            assert!((2.0..=MAX_LIMIT).contains(&limit(cut, 0.0)), "{word}: {cut:?}");
            assert!(cut.good >= 0.0);
            assert!(limit(cut, 1e4).is_infinite(), "it recovers");
        }
    }

    fn seen(sent: f64, good: Option<f64>) -> Observation {
        Observation { sent, good, limit: None, from_peer: false, unpaused_ns: SECOND }
    }

    #[test]
    fn it_halves_stays_comes_near_goes_on_and_multiplies() {
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
    fn after_the_first_cut_it_looks_for_the_limit() {
        let first = LIVE.cut(None, 0, seen(20.0, Some(20.0)), 1.0);
        assert_eq!([0.0, 0.7, 1.7, 3.7].map(|after| limit(first, after)), [10.0, 10.0, 20.0, 80.0]);
    }

    #[test]
    fn good_answers_say_where_near_is() {
        let before = Cut { at: 0, limit: 50.0, good: 40.0 };
        let next = |seen| {
            let cut = LIVE.cut(Some(before), 0, seen, 1.0);
            (cut.limit, cut.good)
        };
        assert_eq!(next(seen(100.0, Some(60.0))), (50.0, 60.0));
        assert_eq!(next(seen(50.0, Some(0.0))), (25.0, 40.0), "none at all: as before");
        assert_eq!(next(seen(50.0, Some(1.0))), (25.0, 20.0), "not less than half at once");
        assert_eq!(next(seen(50.0, None)), (25.0, 50.0), "nobody says");
        assert_eq!(next(seen(50.0, Some(1e9))), (25.0, 50.0), "more than were asked for");
        let used = Observation { limit: Some(70.0), ..seen(50.0, Some(45.0)) };
        assert_eq!(next(used), (35.0, 63.0), "the limit of this moment");
        let unused = Observation { limit: Some(500.0), ..seen(50.0, Some(45.0)) };
        assert_eq!(next(unused), (25.0, 45.0));
        let reported = Observation { limit: Some(70.0), from_peer: true, ..seen(30.0, Some(30.0)) };
        assert_eq!(next(reported), (70.0 * 0.5_f32.sqrt(), 70.0), "less, and by the limit");
    }

    #[test]
    fn the_floor_holds() {
        let cut = LIVE.cut(None, 0, seen(0.0, Some(0.0)), 3.0);
        assert_eq!((cut.limit, cut.good), (3.0, 0.0));
        let cut = LIVE.cut(Some(cut), 0, seen(0.0, Some(7.0)), 3.0);
        assert_eq!(cut.limit, 3.0);
    }
}
