//! The clock that is moved by hand.

use pyo3::prelude::*;

use crate::args::{Arg, seconds};
use crate::errors::{Fault, guard};

/// A clock that stands still until it is moved: for tests without sleeps.
///
/// Give it to any number of throttles. Times are seconds.
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

    /// The time that the clock shows, in seconds.
    fn now(&self) -> PyResult<f64> {
        guard(|| Ok(self.0.now().as_secs_f64()))
    }

    /// Moves the clock on by so many seconds.
    fn advance(&self, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        guard(|| {
            self.0.advance(self::seconds("seconds", seconds)?);
            Ok(())
        })
    }

    /// Moves the clock on to this time. Time never runs backwards: an earlier one is an error.
    fn set(&self, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        guard(|| Ok(self.0.set(self::seconds("seconds", seconds)?)?))
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| Ok(format!("ManualClock({:?})", self.0.now().as_secs_f64())))
    }
}

/// The clock given to a throttle, if one was.
pub(crate) fn given(
    clock: Option<&Bound<'_, PyAny>>,
) -> Result<Option<dthrottle::ManualClock>, Fault> {
    let Some(clock) = clock else { return Ok(None) };
    match clock.cast::<ManualClock>() {
        Ok(clock) => Ok(Some(clock.get().0.clone())),
        Err(_) => Err(Fault::argument(format!(
            "clock {}: must be a ManualClock, or None for the system's clock",
            crate::args::quote(clock)
        ))),
    }
}
