//! `Throttle`.

use std::ffi::CString;

use dthrottle::{Builder, Config};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::args::Arg;
use crate::domain::{self, Domain};
use crate::errors::{CallError, guard};
use crate::raw::HasDomain;
use crate::records::{ClusterEvent, ClusterStats, Stats};
use crate::{args, clock, config};

/// Limits every tag by the rules of a domain.
///
/// The default domain has one rule, given by rate, burst and charge_refused, or several, given as
/// rules, a list of dicts with the keys name, rate, burst and charge_refused. The throttle has all
/// the methods of Domain for it. Other domains are given as domains, a dict of dicts. At least one
/// domain must have a rule, unless the rate is "unlimited" or rules is an empty list. With dry_run,
/// refusals are only counted. A ManualClock given as clock replaces the system's clock.
///
/// The buckets are shared with all children that are forked later. With table, a name or a dict of
/// name, size, group, dir and private, they are shared with every process of this user that uses the
/// same name. A setting that cannot take effect causes a RuntimeWarning.
///
/// With cluster, a dict of name, secret, listen, peers and more, the nodes of the cluster report to
/// each other what they admitted. A thread does this, which starts with the first check of a process.
///
/// Any thread may use the object. A with statement closes it at the end.
#[pyclass(frozen, extends = Domain, module = "dthrottle")]
pub(crate) struct Throttle(dthrottle::Throttle);

fn build(
    py: Python<'_>,
    config: Config,
    clock: Option<dthrottle::ManualClock>,
) -> Result<PyClassInitializer<Throttle>, CallError> {
    let mut builder = Builder::from(config);
    if let Some(clock) = clock {
        builder = builder.clock(clock);
    }
    // Opening files may take long, so other threads run meanwhile.
    let throttle = py.detach(|| builder.build())?;
    for text in throttle.warnings() {
        let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
        // Level 1 is the caller's line, because native code has no frames.
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)?;
    }
    Ok(Throttle::of(throttle))
}

impl Throttle {
    /// The Python object for a throttle of the core.
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
        **unknown
    ), text_signature = "(rate=..., *, burst=None, charge_refused=None, rules=None, domains=None, dry_run=None, table=None, cluster=None, clock=None)")]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
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
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyClassInitializer<Throttle>> {
        guard(|| {
            let clock = clock::given(clock)?;
            // The core's error suggests a name that is known.
            let unknown = unknown.map(|unknown| unknown.iter().collect::<Vec<_>>());
            let unknown = unknown.unwrap_or_default();
            let names = unknown.iter().map(|(name, _)| name.extract::<String>());
            let names = names.collect::<PyResult<Vec<_>>>()?;
            let mut options = vec![
                // rate=None is an error, because it is more likely a missing setting than a wish for
                // no limit.
                ("rate", rate.value()),
                ("burst", burst),
                ("charge_refused", charge_refused),
                ("rules", rules),
                ("domains", domains),
                ("dry_run", dry_run),
                ("table", table),
                ("cluster", cluster),
            ];
            for (name, (_, value)) in names.iter().zip(&unknown) {
                options.push((name, Some(value)));
            }
            build(py, config::from_options(&options)?, clock)
        })
    }

    /// Makes a throttle from a configuration in TOML. A table may be given if the configuration
    /// has none; one with `default_name` also names a table that the configuration leaves unnamed.
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

    /// Makes a throttle from a configuration file in TOML. For table see from_toml.
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
            // Reading a file may take long, so other threads run meanwhile.
            let mut config = py.detach(|| Config::from_file(path))?;
            config::add_table(&mut config, table)?;
            Ok(Py::new(py, build(py, config, clock)?)?)
        })
    }

    /// Like check, but returns only True or False.
    // `Domain` has this method too, but the cast from a throttle to a domain would be the slowest
    // part of the call.
    #[pyo3(signature = (tag, cost=Arg::ABSENT), text_signature = "($self, tag, cost=1)")]
    fn allow(&self, tag: &Bound<'_, PyAny>, cost: Arg<'_, '_>) -> PyResult<bool> {
        guard(|| domain::allow(&self.0, tag, cost))
    }

    /// Returns a domain by its name.
    fn domain(&self, name: &Bound<'_, PyAny>) -> PyResult<Domain> {
        guard(|| Ok(self.0.domain(args::text("name", name)?)?.into()))
    }

    /// The name of the table; None if it has no name.
    #[getter]
    fn table_name(&self) -> Option<&str> {
        self.0.table_name()
    }

    /// Returns the counts of this throttle.
    fn stats(&self) -> PyResult<Stats> {
        guard(|| Ok(Stats(self.0.stats())))
    }

    /// Starts the exchange with the cluster in this process. Otherwise the first check starts it.
    /// Does nothing without a cluster.
    fn start(&self) -> PyResult<()> {
        guard(|| Ok(self.0.start()?))
    }

    /// Returns the state of the cluster as this node sees it; None without a cluster.
    fn cluster_stats(&self) -> PyResult<Option<ClusterStats>> {
        guard(|| Ok(self.0.cluster_stats().map(ClusterStats)))
    }

    /// Returns the events of the cluster after the event with this number, without those that were
    /// dropped. Begin with 0, and continue with the number of the last event.
    #[pyo3(signature = (after=Arg::ABSENT), text_signature = "($self, after=0)")]
    fn events(&self, after: Arg<'_, '_>) -> PyResult<Vec<ClusterEvent>> {
        guard(|| {
            let after = after.number("after")?.unwrap_or_default();
            Ok(self.0.events(after).into_iter().map(ClusterEvent).collect())
        })
    }

    /// Closes the throttle and leaves the cluster, which may take a moment. Later calls about a tag,
    /// on the throttle or its domains, raise ClosedError. May be called again.
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
}
