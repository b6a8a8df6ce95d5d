//! Checks and converts numbers of dynamic languages, for all bindings.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// The largest cost in a float. Above 2^53 a float cannot represent every whole number.
pub(crate) const MAX_FLOAT_COST: f64 = 9_007_199_254_740_992.0;

/// Converts a cost given as a float.
///
/// # Errors
///
/// [`ErrorKind::Cost`] unless it is a whole number from 0 to 2^53.
pub fn cost_from_f64(cost: f64) -> Result<u64> {
    if cost.fract() == 0.0 && (0.0..=MAX_FLOAT_COST).contains(&cost) {
        Ok(cost as u64)
    } else {
        Err(bad_cost(shown(cost)))
    }
}

/// The error about a cost that is not a whole number from 0 to 2^53.
pub fn bad_cost(cost: impl std::fmt::Display) -> Error {
    let message = format!("`cost` must be a whole number from 0 to 2^53, got {cost}");
    Error::new(ErrorKind::Cost, message)
}

/// 100 years. A longer time was probably given in another unit, and would exceed the range of a
/// clock.
const LONGEST_NS: f64 = 100.0 * 365.0 * 86_400e9;

/// Below this number of nanoseconds, which is 104 days, a float represents every whole number.
const EXACT_NS: u64 = 1 << 53;

/// Converts seconds given as a float. `name` is the argument that an error names.
///
/// # Errors
///
/// [`ErrorKind::Argument`] unless the time is from 0 to 100 years.
pub fn duration_from_secs(name: &str, seconds: f64) -> Result<Duration> {
    duration(name, seconds, 1e9, "seconds")
}

/// Converts milliseconds given as a float. `name` is the argument that an error names.
///
/// # Errors
///
/// [`ErrorKind::Argument`] unless the time is from 0 to 100 years.
pub fn duration_from_millis(name: &str, millis: f64) -> Result<Duration> {
    duration(name, millis, 1e6, "milliseconds")
}

/// Converts a duration to milliseconds, to the nanosecond if a float can represent it.
pub fn millis(duration: Duration) -> f64 {
    match u64::try_from(duration.as_nanos()) {
        Ok(ns) if ns < EXACT_NS => ns as f64 / 1e6,
        // For example a time since 1970, of which a float cannot represent all nanoseconds.
        _ => duration.as_millis() as f64 + f64::from(duration.subsec_nanos() % 1_000_000) / 1e6,
    }
}

/// Formats a number for a message, without hundreds of digits.
pub(crate) fn shown(number: f64) -> String {
    match number.abs() {
        0.0 | 1e-9..1e16 => number.to_string(),
        _ => format!("{number:e}"),
    }
}

fn duration(name: &str, number: f64, ns: f64, unit: &str) -> Result<Duration> {
    if number >= 0.0 && number * ns < LONGEST_NS {
        // Converts whole and fraction separately, so that whole units are exact however large they
        // are.
        let whole = number.trunc() as u64 * ns as u64;
        Ok(Duration::from_nanos(whole + (number.fract() * ns).round() as u64))
    } else {
        let number = shown(number);
        let message =
            format!("`{name}` must be a number of {unit} from 0 to 100 years, got {number}");
        Err(Error::new(ErrorKind::Argument, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_above_2_to_the_53_is_an_error() {
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
    fn numbers_in_messages_are_short() {
        assert_eq!(
            [1.5, -2.0, 0.0, 1e300, 5e-324].map(shown),
            ["1.5", "-2", "0", "1e300", "5e-324"]
        );
    }
}
