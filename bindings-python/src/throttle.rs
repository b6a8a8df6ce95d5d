//! The throttle: how it is built, its domains, its end.

use std::ffi::CString;

use dthrottle::{Builder, Config};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

use crate::args::Arg;
use crate::domain::{self, Domain};
use crate::errors::{Fault, guard};
use crate::raw::HasDomain;
use crate::records::{ClusterEvent, ClusterStats, Stats};
use crate::{args, clock, config};

/// Holds every tag to the rules of its domains.
///
/// One rule is given by rate, burst and charge_refused; more of them as a list of dicts, rules,
/// with the keys name, rate, burst and charge_refused. They make up the default domain, for which
/// the throttle itself stands: it has all the calls of Domain. Other domains are given as a dict of
/// dicts, domains. At least one domain must have a rule, unless the rate is "unlimited" or rules is
/// an empty list. With dry_run, refusals are only counted. A ManualClock given as clock takes the
/// place of the system's.
///
/// The buckets are shared with all children that are forked later; with table, a name or a dict of
/// name, size, group, dir and private, also with every process of this user that gives the same
/// name. What cannot be as it was asked for is a RuntimeWarning. The nodes of a cluster, a dict of
/// name, secret, listen, peers and more, tell each other what they admitted, in a thread that starts
/// with the first check of a process.
///
/// Any thread may use it. In a with statement it is closed at the end.
#[pyclass(frozen, extends = Domain, module = "dthrottle")]
pub(crate) struct Throttle(dthrottle::Throttle);

fn build(
    py: Python<'_>,
    config: Config,
    clock: Option<dthrottle::ManualClock>,
) -> Result<PyClassInitializer<Throttle>, Fault> {
    let mut builder = Builder::from(config);
    if let Some(clock) = clock {
        builder = builder.clock(clock);
    }
    // It may open files, and no other thread should wait for a disk.
    let throttle = py.detach(|| builder.build())?;
    for text in throttle.warnings() {
        let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
        // 1: the line that called, as native code has none.
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)?;
    }
    Ok(Throttle::of(throttle))
}

impl Throttle {
    /// A throttle that was built.
    pub(crate) fn of(throttle: dthrottle::Throttle) -> PyClassInitializer<Throttle> {
        let default = Domain::from(dthrottle::Domain::clone(&throttle));
        PyClassInitializer::from(default).add_subclass(Throttle(throttle))
    }
}

impl HasDomain for Throttle {
    fn domain(&self) -> &dthrottle::Domain {
        &self.0
    }
}

#[pymethods]
impl Throttle {
    #[new]
    #[pyo3(signature = (
        rate=Arg::ABSENT,
        *,
        burst=None,
        charge_refused=None,
        rules=None,
        domains=None,
        dry_run=None,
        table=None,
        cluster=None,
        clock=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "in Python they have names")]
    fn new(
        py: Python<'_>,
        rate: Arg<'_, '_>,
        burst: Option<&Bound<'_, PyAny>>,
        charge_refused: Option<&Bound<'_, PyAny>>,
        rules: Option<&Bound<'_, PyAny>>,
        domains: Option<&Bound<'_, PyAny>>,
        dry_run: Option<&Bound<'_, PyAny>>,
        table: Option<&Bound<'_, PyAny>>,
        cluster: Option<&Bound<'_, PyAny>>,
        clock: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Throttle>> {
        guard(|| {
            let clock = clock::given(clock)?;
            let config = config::from_options(&[
                // None here is more likely a setting that is missing than a wish for no limit.
                ("rate", rate.value()),
                ("burst", burst),
                ("charge_refused", charge_refused),
                ("rules", rules),
                ("domains", domains),
                ("dry_run", dry_run),
                ("table", table),
                ("cluster", cluster),
            ])?;
            build(py, config, clock)
        })
    }

    /// A throttle from a configuration in TOML. A table is for a configuration that describes
    /// none; one with `default_name` also names a table that the configuration leaves unnamed.
    #[staticmethod]
    #[pyo3(signature = (text, *, table=None, clock=None))]
    fn from_toml(
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        table: Option<&Bound<'_, PyAny>>,
        clock: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Throttle>> {
        guard(|| {
            let clock = clock::given(clock)?;
            let mut config = Config::from_toml(args::text("text", text)?)?;
            config::add_table(&mut config, table)?;
            Ok(Py::new(py, build(py, config, clock)?)?)
        })
    }

    /// A throttle from a configuration file in TOML; table as in from_toml.
    #[staticmethod]
    #[pyo3(signature = (path, *, table=None, clock=None))]
    fn from_file(
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        table: Option<&Bound<'_, PyAny>>,
        clock: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Throttle>> {
        guard(|| {
            let clock = clock::given(clock)?;
            let path = args::path(path)?;
            // A disk may be slow, and no other thread should wait for it.
            let mut config = py.detach(|| Config::from_file(path))?;
            config::add_table(&mut config, table)?;
            Ok(Py::new(py, build(py, config, clock)?)?)
        })
    }

    /// Asks for cost units, and takes them if they pass: True or False.
    // The domain's own would do; but to see that a throttle is a domain takes longer than all else
    // that this call does for Python.
    #[pyo3(signature = (tag, cost=Arg::ABSENT), text_signature = "($self, tag, cost=1)")]
    fn allow(&self, tag: &Bound<'_, PyAny>, cost: Arg<'_, '_>) -> PyResult<bool> {
        domain::allow(&self.0, tag, cost)
    }

    /// A handle to a domain.
    fn domain(&self, name: &Bound<'_, PyAny>) -> PyResult<Domain> {
        guard(|| Ok(self.0.domain(args::text("name", name)?)?.into()))
    }

    /// The name of the table; None if it is shared by none.
    #[getter]
    fn table_name(&self) -> Option<&str> {
        self.0.table_name()
    }

    /// What the throttle counted so far.
    fn stats(&self) -> PyResult<Stats> {
        guard(|| Ok(Stats(self.0.stats())))
    }

    /// Starts the exchange with the cluster in this process, unless it has started: otherwise the
    /// first check does. Without a cluster there is nothing to start.
    fn start(&self) -> PyResult<()> {
        guard(|| Ok(self.0.start()?))
    }

    /// The cluster, as this node sees it; None if it belongs to none.
    fn cluster_stats(&self) -> PyResult<Option<ClusterStats>> {
        guard(|| Ok(self.0.cluster_stats().map(ClusterStats)))
    }

    /// What happened in the cluster after the event with this number, as far as it is still known:
    /// begin with 0, and go on with the number of the last one.
    #[pyo3(signature = (after=Arg::ABSENT), text_signature = "($self, after=0)")]
    fn events(&self, after: Arg<'_, '_>) -> PyResult<Vec<ClusterEvent>> {
        guard(|| {
            let after = after.number("after")?.unwrap_or_default();
            Ok(self.0.events(after).into_iter().map(ClusterEvent).collect())
        })
    }

    /// Ends the throttle: every later call about a tag, on it or its domains, raises ClosedError.
    /// Takes leave of its cluster in this process, which may take a moment. May be called again.
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
}
