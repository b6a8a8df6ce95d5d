//! The code for busy throttles that both JavaScript bindings share.

use std::time::Duration;

use dthrottle::busy::Turn;
use dthrottle::config::Names;
use dthrottle::{BusyConfig, BusyThrottle, Result, convert};

use super::tree;

/// The settings of an encoded object.
pub(crate) fn config(encoded: Vec<String>) -> Result<BusyConfig> {
    BusyConfig::from_value(&tree::decode(encoded)?, Names::Camel)
}

/// The throttle, or an error if it is closed.
pub(crate) fn open(throttle: &BusyThrottle) -> Result<&BusyThrottle> {
    throttle.check_open()?;
    Ok(throttle)
}

/// The given time, or that of the throttle's clock.
pub(crate) fn time(throttle: &BusyThrottle, now_ms: Option<f64>) -> Result<Duration> {
    now_ms.map_or_else(|| Ok(throttle.now()), |ms| convert::duration_from_millis("nowMs", ms))
}

/// The time of Retry-After, if it is given.
pub(crate) fn pause(retry_after_ms: Option<f64>) -> Result<Option<Duration>> {
    retry_after_ms.map(|ms| convert::duration_from_millis("retryAfterMs", ms)).transpose()
}

/// A turn as the numbers that the API converts to an object: allowed, waitMs, limit.
pub(crate) fn turn(turn: Turn) -> Vec<f64> {
    vec![f64::from(u8::from(turn.allowed)), convert::millis(turn.wait), limit(turn.limit)]
}

/// A limit for the API, which is Infinity without one.
pub(crate) fn limit(limit: Option<f64>) -> f64 {
    limit.unwrap_or(f64::INFINITY)
}

/// The counts of a busy throttle, in the order of its fields.
pub(crate) fn counts(throttle: &BusyThrottle) -> Vec<f64> {
    throttle.stats(throttle.now()).values().map(super::number).into()
}
