//! The manual clock.

use dthrottle::{ManualClock, convert};
use napi::bindgen_prelude::External;
use napi_derive::napi;

use crate::failure::{Result, failure};

/// Makes a clock that stands at zero.
#[napi(catch_unwind)]
pub fn new_clock() -> External<ManualClock> {
    External::new(ManualClock::new())
}

/// The time in milliseconds.
#[napi(catch_unwind)]
pub fn now(clock: &External<ManualClock>) -> f64 {
    convert::millis(clock.now())
}

/// Moves the clock forward.
#[napi(catch_unwind)]
pub fn advance(clock: &External<ManualClock>, ms: f64) -> Result<()> {
    clock.advance(convert::duration_from_millis("ms", ms).map_err(failure)?);
    Ok(())
}

/// Moves the clock forward to a time.
#[napi(catch_unwind)]
pub fn set(clock: &External<ManualClock>, ms: f64) -> Result<()> {
    let to = convert::duration_from_millis("ms", ms).map_err(failure)?;
    clock.set(to).map_err(failure)
}
