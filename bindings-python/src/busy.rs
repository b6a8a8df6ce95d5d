//! `BusyThrottle`: limits for requests to services that answer that they are busy.

use std::ffi::CString;
use std::time::Duration;

use dthrottle::config::{BusyConfig, Names};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

use crate::args::{self, Arg};
use crate::errors::{CallError, guard};
use crate::records::BusyStats;
use crate::{clock, config};

/// Sends fewer requests to services that answer that they are busy, and recovers gradually.
///
/// A service is any name, as str or bytes. The limits are shared with forked children. With table, a
/// name or a dict of name, size, group, dir and private, all processes of this user that use the
/// same name share them. The mode is "live", with the parameters floor, cut, near, step, patience
/// and growth, or "document", with recover_rate or recover_value. max_pause is the longest pause that
/// a service can ask for. With cluster, a dict like that of Throttle, a busy response to one node
/// slows all nodes of the cluster. A ManualClock given as clock replaces the system's clock.
///
/// Times are seconds or a timedelta. now is a time of the throttle's clock; by default the clock is
/// read. Any thread may use the object. Only close waits. A with statement closes it at the end.
#[pyclass(frozen, module = "dthrottle.busy")]
pub(crate) struct BusyThrottle(dthrottle::BusyThrottle);

/// The answer of BusyThrottle.turn. It is true if the request may be sent now.
#[pyclass(frozen, get_all, module = "dthrottle.busy")]
pub(crate) struct Turn {
    /// Whether the request may be sent now.
    allowed: bool,
    /// Seconds after which to ask again; 0 if allowed.
    wait: f64,
    /// The limit of the service in requests per second; None if there is no limit.
    limit: Option<f64>,
}

type Given<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

#[pymethods]
impl BusyThrottle {
    #[new]
    #[pyo3(signature = (
        *,
        mode=None,
        floor=None,
        max_pause=None,
        cut=None,
        near=None,
        step=None,
        patience=None,
        growth=None,
        recover_rate=None,
        recover_value=None,
        table=None,
        cluster=None,
        clock=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    fn new(
        py: Python<'_>,
        mode: Given<'_, '_>,
        floor: Given<'_, '_>,
        max_pause: Given<'_, '_>,
        cut: Given<'_, '_>,
        near: Given<'_, '_>,
        step: Given<'_, '_>,
        patience: Given<'_, '_>,
        growth: Given<'_, '_>,
        recover_rate: Given<'_, '_>,
        recover_value: Given<'_, '_>,
        table: Given<'_, '_>,
        cluster: Given<'_, '_>,
        clock: Given<'_, '_>,
    ) -> PyResult<BusyThrottle> {
        guard(|| {
            let clock = clock::given(clock)?;
            let root = config::tree_of(&[
                ("mode", mode),
                ("floor", floor),
                ("max_pause", max_pause),
                ("cut", cut),
                ("near", near),
                ("step", step),
                ("patience", patience),
                ("growth", growth),
                ("recover_rate", recover_rate),
                ("recover_value", recover_value),
                ("table", table),
                ("cluster", cluster),
            ])?;
            let config = BusyConfig::from_value(&root, Names::Snake)?;
            // Opening files may take long, so other threads run meanwhile.
            let throttle = py.detach(|| match clock {
                Some(clock) => dthrottle::BusyThrottle::with_clock(config, clock),
                None => dthrottle::BusyThrottle::new(config),
            })?;
            for text in throttle.warnings() {
                let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
                PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)?;
            }
            Ok(BusyThrottle(throttle))
        })
    }

    /// Returns whether a request may be sent now. An allowed request counts as sent.
    #[pyo3(signature = (service, *, now=Arg::ABSENT), text_signature = "($self, service, *, now=...)")]
    fn should_send(&self, service: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> PyResult<bool> {
        guard(|| Ok(self.open()?.should_send(name(service)?, self.time(now)?)))
    }

    /// Like should_send, but also returns the limit and after how many seconds to ask again.
    #[pyo3(signature = (service, *, now=Arg::ABSENT), text_signature = "($self, service, *, now=...)")]
    fn turn(&self, service: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> PyResult<Turn> {
        guard(|| {
            let turn = self.open()?.turn(name(service)?, self.time(now)?);
            Ok(Turn { allowed: turn.allowed, wait: turn.wait.as_secs_f64(), limit: turn.limit })
        })
    }

    /// Records a busy response. retry_after is the pause in seconds that the service asked for.
    #[pyo3(
        signature = (service, retry_after=None, *, now=Arg::ABSENT),
        text_signature = "($self, service, retry_after=None, *, now=...)"
    )]
    fn on_busy(
        &self,
        service: &Bound<'_, PyAny>,
        retry_after: Given<'_, '_>,
        now: Arg<'_, '_>,
    ) -> PyResult<()> {
        guard(|| {
            let pause = retry_after.map(|value| args::seconds("retry_after", value)).transpose()?;
            self.open()?.on_busy(name(service)?, self.time(now)?, pause);
            Ok(())
        })
    }

    /// Records any other response.
    #[pyo3(signature = (service, *, now=Arg::ABSENT), text_signature = "($self, service, *, now=...)")]
    fn on_ok(&self, service: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> PyResult<()> {
        guard(|| {
            self.open()?.on_ok(name(service)?, self.time(now)?);
            Ok(())
        })
    }

    /// Returns the limit of a service in requests per second; None if there is no limit.
    #[pyo3(signature = (service, *, now=Arg::ABSENT), text_signature = "($self, service, *, now=...)")]
    fn limit(&self, service: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> PyResult<Option<f64>> {
        guard(|| Ok(self.open()?.limit(name(service)?, self.time(now)?)))
    }

    /// Returns how many requests were sent to a service in the last second.
    #[pyo3(signature = (service, *, now=Arg::ABSENT), text_signature = "($self, service, *, now=...)")]
    fn rate(&self, service: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> PyResult<f64> {
        guard(|| Ok(self.open()?.rate(name(service)?, self.time(now)?)))
    }

    /// Forgets a service and its limit.
    fn forget(&self, service: &Bound<'_, PyAny>) -> PyResult<()> {
        guard(|| {
            self.open()?.forget(name(service)?);
            Ok(())
        })
    }

    /// Starts the exchange with the cluster in this process. Otherwise the first request starts it.
    /// Does nothing without a cluster.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        guard(|| {
            let throttle = self.open()?;
            py.detach(|| throttle.start());
            Ok(())
        })
    }

    /// Closes the throttle and leaves the cluster, which takes up to 0.3 seconds. Later calls about
    /// a service raise ClosedError. May be called again.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        guard(|| {
            // Closing waits for the exchange to end, so other threads run meanwhile.
            py.detach(|| self.0.close());
            Ok(())
        })
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _exc_type: &Bound<'_, PyAny>,
        _exc_value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }

    /// Returns the counts of this throttle, also after close.
    fn stats(&self) -> PyResult<BusyStats> {
        guard(|| Ok(BusyStats(self.0.stats(self.0.now()))))
    }

    /// Returns the time of the throttle's clock.
    fn now(&self) -> PyResult<f64> {
        guard(|| Ok(self.0.now().as_secs_f64()))
    }
}

/// Closes a throttle that was not closed, while other threads run.
impl Drop for BusyThrottle {
    fn drop(&mut self) {
        let throttle = &self.0;
        // Attaching fails at the end of the interpreter, when no other thread runs.
        Python::try_attach(|py| py.detach(|| throttle.close()));
    }
}

impl BusyThrottle {
    fn open(&self) -> Result<&dthrottle::BusyThrottle, CallError> {
        self.0.check_open()?;
        Ok(&self.0)
    }

    fn time(&self, now: Arg<'_, '_>) -> Result<Duration, CallError> {
        Ok(now.seconds("now")?.unwrap_or_else(|| self.0.now()))
    }
}

fn name<'a>(service: &'a Bound<'_, PyAny>) -> Result<&'a [u8], CallError> {
    args::bytes("service", service)
}

#[pymethods]
impl Turn {
    fn __bool__(&self) -> bool {
        self.allowed
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| {
            let Turn { allowed, wait, limit } = self;
            let allowed = if *allowed { "True" } else { "False" };
            let limit = limit.map_or("None".into(), |limit| format!("{limit:?}"));
            Ok(format!("Turn(allowed={allowed}, wait={wait:?}, limit={limit})"))
        })
    }
}
