//! Busy answers of services that are called: the client's side.

use std::ffi::CString;
use std::time::Duration;

use dthrottle::config::{BusyConfig, Names};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

use crate::args::{self, Arg};
use crate::errors::{Fault, guard};
use crate::records::BusyStats;
use crate::{clock, config};

/// Slows down what is sent to services that say they are busy, and comes back gradually.
///
/// A service is any name, as str or bytes. With table, a name or a dict of name, size, group, dir
/// and private, all processes of this user that give the same name share what they know; without
/// it, this process and its forked children. The mode is "live", set by floor, cut, near, step,
/// patience and growth, or "document", set by recover_rate or recover_value; max_pause is the longest
/// pause that a service can ask for. With cluster, a dict as that of Throttle, the nodes of the cluster
/// tell each other, and what one is told slows all. A ManualClock given as clock takes the place of the system's.
///
/// Times are seconds. now is the time by the throttle's clock, read if it is left out. Any thread
/// may use it; no call but close waits. In a with statement it is closed at the end.
#[pyclass(frozen, module = "dthrottle.busy")]
pub(crate) struct BusyThrottle(dthrottle::BusyThrottle);

/// Whether a request may be sent now. It is true when allowed.
#[pyclass(frozen, get_all, module = "dthrottle.busy")]
pub(crate) struct Turn {
    /// Whether it may.
    allowed: bool,
    /// If it may not: seconds until it is worth asking again.
    wait: f64,
    /// Requests a second; None: there is no limit.
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
    #[expect(clippy::too_many_arguments, reason = "in Python they have names")]
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
            // It may open files, and no other thread should wait for a disk.
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

    /// Whether a request may be sent now. If it may, it counts as sent.
    #[pyo3(signature = (service, *, now=Arg::ABSENT), text_signature = "($self, service, *, now=...)")]
    fn should_send(&self, service: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> PyResult<bool> {
        guard(|| Ok(self.open()?.should_send(name(service)?, self.time(now)?)))
    }

    /// The same, with the wait and the limit.
    #[pyo3(signature = (service, *, now=Arg::ABSENT), text_signature = "($self, service, *, now=...)")]
    fn turn(&self, service: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> PyResult<Turn> {
        guard(|| {
            let turn = self.open()?.turn(name(service)?, self.time(now)?);
            Ok(Turn { allowed: turn.allowed, wait: turn.wait.as_secs_f64(), limit: turn.limit })
        })
    }

    /// The service said that it is busy, and maybe for how many seconds nothing should be sent.
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

    /// The service gave any other answer.
    #[pyo3(signature = (service, *, now=Arg::ABSENT), text_signature = "($self, service, *, now=...)")]
    fn on_ok(&self, service: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> PyResult<()> {
        guard(|| {
            self.open()?.on_ok(name(service)?, self.time(now)?);
            Ok(())
        })
    }

    /// The limit of a service in requests a second; None: there is none.
    #[pyo3(signature = (service, *, now=Arg::ABSENT), text_signature = "($self, service, *, now=...)")]
    fn limit(&self, service: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> PyResult<Option<f64>> {
        guard(|| Ok(self.open()?.limit(name(service)?, self.time(now)?)))
    }

    /// How many requests were sent to a service in the last second.
    #[pyo3(signature = (service, *, now=Arg::ABSENT), text_signature = "($self, service, *, now=...)")]
    fn rate(&self, service: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> PyResult<f64> {
        guard(|| Ok(self.open()?.rate(name(service)?, self.time(now)?)))
    }

    /// Forgets a service, and with it its limit.
    fn forget(&self, service: &Bound<'_, PyAny>) -> PyResult<()> {
        guard(|| {
            self.open()?.forget(name(service)?);
            Ok(())
        })
    }

    /// Starts the exchange with the cluster in this process, unless it has started: otherwise the
    /// first request does. Without a cluster there is nothing to start.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        guard(|| {
            let throttle = self.open()?;
            py.detach(|| throttle.start());
            Ok(())
        })
    }

    /// Ends the throttle: every later call about a service raises ClosedError. Takes leave of its
    /// cluster in this process, which may take up to 0.3 seconds. May be called again.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        guard(|| {
            // It waits for the exchange to end, and no other thread should.
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

    /// What the throttle counted so far, also after close.
    fn stats(&self) -> PyResult<BusyStats> {
        guard(|| Ok(BusyStats(self.0.stats(self.0.now()))))
    }

    /// The time by the throttle's clock.
    fn now(&self) -> PyResult<f64> {
        guard(|| Ok(self.0.now().as_secs_f64()))
    }
}

/// What nobody has closed ends as if it were: no other thread waits for the exchange.
impl Drop for BusyThrottle {
    fn drop(&mut self) {
        let throttle = &self.0;
        // At the end of the interpreter nobody is left who could wait.
        Python::try_attach(|py| py.detach(|| throttle.close()));
    }
}

impl BusyThrottle {
    fn open(&self) -> Result<&dthrottle::BusyThrottle, Fault> {
        self.0.check_open()?;
        Ok(&self.0)
    }

    fn time(&self, now: Arg<'_, '_>) -> Result<Duration, Fault> {
        Ok(now.seconds("now")?.unwrap_or_else(|| self.0.now()))
    }
}

fn name<'a>(service: &'a Bound<'_, PyAny>) -> Result<&'a [u8], Fault> {
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
