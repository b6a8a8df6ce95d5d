//! The manual clock.

use dthrottle::{ManualClock, convert};
use wasm_bindgen::prelude::*;

use crate::failure::{Result, failure};

/// A manual clock.
#[wasm_bindgen]
pub struct Clock {
    pub(crate) clock: ManualClock,
    follows_host: bool,
}

impl Clock {
    /// Unix time, if the clock follows the host. The clock itself may count from any other time.
    pub(crate) fn unix_ms(&self) -> Option<fn() -> u64> {
        self.follows_host.then_some(|| js_sys::Date::now() as u64)
    }
}

/// Makes a clock that stands at zero.
#[wasm_bindgen(js_name = newClock)]
pub fn new_clock(follows_host: bool) -> Clock {
    Clock { clock: ManualClock::new(), follows_host }
}

/// The time in milliseconds.
#[wasm_bindgen]
pub fn now(clock: &Clock) -> f64 {
    convert::millis(clock.clock.now())
}

/// Moves the clock forward.
#[wasm_bindgen]
pub fn advance(clock: &Clock, ms: f64) -> Result<()> {
    clock.clock.advance(convert::duration_from_millis("ms", ms).map_err(failure)?);
    Ok(())
}

/// Moves the clock forward to a time.
#[wasm_bindgen]
pub fn set(clock: &Clock, ms: f64) -> Result<()> {
    let to = convert::duration_from_millis("ms", ms).map_err(failure)?;
    clock.clock.set(to).map_err(failure)
}
