//! The manual clock.

use dthrottle::{ManualClock, convert};
use wasm_bindgen::prelude::*;

use crate::failure::{Result, failure};

/// A clock that is moved by hand.
#[wasm_bindgen]
pub struct Clock(pub(crate) ManualClock);

/// A clock that is moved by hand, and stands at zero.
#[wasm_bindgen(js_name = newClock)]
pub fn new_clock() -> Clock {
    Clock(ManualClock::new())
}

/// Milliseconds since the clock's zero.
#[wasm_bindgen]
pub fn now(clock: &Clock) -> f64 {
    convert::millis(clock.0.now())
}

/// Moves the clock on.
#[wasm_bindgen]
pub fn advance(clock: &Clock, ms: f64) -> Result<()> {
    clock.0.advance(convert::duration_from_millis("ms", ms).map_err(failure)?);
    Ok(())
}

/// Moves the clock on to a time.
#[wasm_bindgen]
pub fn set(clock: &Clock, ms: f64) -> Result<()> {
    let to = convert::duration_from_millis("ms", ms).map_err(failure)?;
    clock.0.set(to).map_err(failure)
}
