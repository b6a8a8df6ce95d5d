//! Numbers of dynamic languages, checked once for all bindings.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// The largest cost in a float: above 2^53 not every whole number is one.
pub(crate) const MAX_FLOAT_COST: f64 = 9_007_199_254_740_992.0;

/// A cost (or hits) given as a float: a whole number from 0 to 2^53.
pub fn cost_from_f64(cost: f64) -> Result<u64> {
    if cost.fract() == 0.0 && (0.0..=MAX_FLOAT_COST).contains(&cost) {
        Ok(cost as u64)
    } else {
        Err(bad_cost(shown(cost)))
    }
}

/// The error about a cost that is no whole number from 0 up, whatever it is.
pub fn bad_cost(cost: impl std::fmt::Display) -> Error {
    let message = format!("cost {cost}: a cost must be a whole number, 0 or more");
    Error::new(ErrorKind::Cost, message)
}

/// 100 years. A time beyond is most likely one in another unit, and a clock set there would end.
const LONGEST_NS: f64 = 100.0 * 365.0 * 86_400e9;

/// Up to here, 104 days, a float holds every whole number of nanoseconds.
const EXACT_NS: u64 = 1 << 53;

/// Seconds given as a float.
pub fn duration_from_secs(name: &str, seconds: f64) -> Result<Duration> {
    duration(name, seconds, 1e9, "seconds")
}

/// Milliseconds given as a float.
pub fn duration_from_millis(name: &str, millis: f64) -> Result<Duration> {
    duration(name, millis, 1e6, "milliseconds")
}

/// Milliseconds as a float, to the nanosecond where a float can hold it.
pub fn millis(duration: Duration) -> f64 {
    match u64::try_from(duration.as_nanos()) {
        Ok(ns) if ns < EXACT_NS => ns as f64 / 1e6,
        // A time since 1970, for instance: a float has no room for all of its nanoseconds.
        _ => duration.as_millis() as f64 + f64::from(duration.subsec_nanos() % 1_000_000) / 1e6,
    }
}

/// A number as a message quotes it: not with hundreds of digits.
pub(crate) fn shown(number: f64) -> String {
    match number.abs() {
        0.0 | 1e-9..1e16 => number.to_string(),
        _ => format!("{number:e}"),
    }
}

fn duration(name: &str, number: f64, ns: f64, unit: &str) -> Result<Duration> {
    if number >= 0.0 && number * ns < LONGEST_NS {
        // The parts separately, so that whole units are exact however large they are.
        let whole = number.trunc() as u64 * ns as u64;
        Ok(Duration::from_nanos(whole + (number.fract() * ns).round() as u64))
    } else {
        let number = shown(number);
        let message = format!(
            "{name} {number}: must be a number of {unit} from 0 to 100 years; is it in {unit}?"
        );
        Err(Error::new(ErrorKind::Argument, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_end_where_floats_have_gaps() {
        assert_eq!(cost_from_f64(9_007_199_254_740_992.0), Ok(1 << 53));
        assert!(cost_from_f64(9_007_199_254_740_994.0).is_err());
        assert_eq!(cost_from_f64(-0.0), Ok(0));
    }

    #[test]
    fn milliseconds_since_1970_are_exact() {
        for ms in (1_795_022_022_000..1_795_022_023_000_u64).map(|ms| ms as f64) {
            assert_eq!(millis(duration_from_millis("ms", ms).unwrap()), ms);
        }
    }

    #[test]
    fn times_are_rounded_to_the_nearest_nanosecond() {
        let millis = |number| duration_from_millis("wait", number).unwrap();
        assert_eq!(millis(0.000_001_6), Duration::from_nanos(2));
        assert_eq!(millis(0.000_000_4), Duration::ZERO);
        for wrong in [1e300, 3.2e15, f64::INFINITY, f64::NAN, -1.0] {
            let error = duration_from_millis("wait", wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Argument);
        }
        assert_eq!(duration_from_secs("age", 0.1).unwrap(), Duration::from_millis(100));
    }

    #[test]
    fn numbers_are_quoted_short() {
        assert_eq!(
            [1.5, -2.0, 0.0, 1e300, 5e-324].map(shown),
            ["1.5", "-2", "0", "1e300", "5e-324"]
        );
    }
}
