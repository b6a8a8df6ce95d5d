//! What the two doors have in common about busy answers.

use std::time::Duration;

use dthrottle::busy::Turn;
use dthrottle::config::Names;
use dthrottle::{BusyConfig, BusyThrottle, Result, convert};

use super::tree;

/// The settings that the words of an object say.
pub(crate) fn config(words: Vec<String>) -> Result<BusyConfig> {
    BusyConfig::from_value(&tree::root(words)?, Names::Camel)
}

/// The throttle for a call about a service, unless it is closed.
pub(crate) fn open(throttle: &BusyThrottle) -> Result<&BusyThrottle> {
    throttle.check_open()?;
    Ok(throttle)
}

/// A time that was given, or else that of the throttle's clock.
pub(crate) fn time(throttle: &BusyThrottle, now_ms: Option<f64>) -> Result<Duration> {
    now_ms.map_or_else(|| Ok(throttle.now()), |ms| convert::duration_from_millis("nowMs", ms))
}

/// How long a service asked to be left alone, if it did.
pub(crate) fn pause(retry_after_ms: Option<f64>) -> Result<Option<Duration>> {
    retry_after_ms.map(|ms| convert::duration_from_millis("retryAfterMs", ms)).transpose()
}

/// A turn as the numbers that the API turns into an object: allowed, waitMs, limit.
pub(crate) fn turn(turn: Turn) -> Vec<f64> {
    vec![f64::from(u8::from(turn.allowed)), convert::millis(turn.wait), limit(turn.limit)]
}

/// A limit as the API has it: none is Infinity.
pub(crate) fn limit(limit: Option<f64>) -> f64 {
    limit.unwrap_or(f64::INFINITY)
}

/// The counts of a busy throttle, in the order of its fields.
pub(crate) fn counts(throttle: &BusyThrottle) -> Vec<f64> {
    throttle.stats(throttle.now()).values().map(super::number).into()
}
