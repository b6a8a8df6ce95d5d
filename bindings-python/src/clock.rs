//! `ManualClock`.

use pyo3::prelude::*;

use crate::args::{Arg, seconds, wrong};
use crate::errors::{CallError, guard};

/// A clock that moves only by advance and set, for tests without sleeps.
///
/// Several throttles may use one clock. Times are seconds or a timedelta.
#[pyclass(frozen, module = "dthrottle")]
pub(crate) struct ManualClock(pub(crate) dthrottle::ManualClock);

#[pymethods]
impl ManualClock {
    #[new]
    #[pyo3(signature = (start=Arg::ABSENT), text_signature = "(start=0.0)")]
    fn new(start: Arg<'_, '_>) -> PyResult<ManualClock> {
        guard(|| {
            let clock = dthrottle::ManualClock::new();
            clock.set(start.seconds("start")?.unwrap_or_default())?;
            Ok(ManualClock(clock))
        })
    }

    /// Returns the time in seconds.
    fn now(&self) -> PyResult<f64> {
        guard(|| Ok(self.0.now().as_secs_f64()))
    }

    /// Moves the clock forward by a number of seconds.
    fn advance(&self, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        guard(|| {
            self.0.advance(self::seconds("seconds", seconds)?);
            Ok(())
        })
    }

    /// Moves the clock forward to a time. An earlier time is an error.
    fn set(&self, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        guard(|| Ok(self.0.set(self::seconds("seconds", seconds)?)?))
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| Ok(format!("ManualClock({:?})", self.0.now().as_secs_f64())))
    }
}

/// The clock that was given to a throttle; `None` is the system's clock.
pub(crate) fn given(
    clock: Option<&Bound<'_, PyAny>>,
) -> Result<Option<dthrottle::ManualClock>, CallError> {
    let Some(clock) = clock else { return Ok(None) };
    match clock.cast::<ManualClock>() {
        Ok(clock) => Ok(Some(clock.get().0.clone())),
        Err(_) => Err(wrong("clock", "a ManualClock, or None for the system's clock", clock)),
    }
}
