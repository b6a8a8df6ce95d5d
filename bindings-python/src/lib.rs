//! dthrottle for Python: the native module `dthrottle._dthrottle`.
//!
//! It converts arguments, calls the core once and converts the answer; what it means is in
//! `docs/semantics.md`. The public package, its exceptions and its types are in `python/dthrottle`.
//! The doc comments of classes and methods are Python docstrings.

mod args;
mod busy;
mod clock;
mod config;
mod decision;
mod domain;
mod errors;
mod raw;
mod records;
mod tables;
mod throttle;
mod web;

#[pyo3::pymodule]
mod _dthrottle {
    #[pymodule_export]
    use crate::busy::{BusyThrottle, Turn};
    #[pymodule_export]
    use crate::clock::ManualClock;
    #[pymodule_export]
    use crate::decision::Decision;
    #[pymodule_export]
    use crate::domain::{Domain, Rule};
    #[pymodule_export]
    use crate::errors::_panic;
    #[pymodule_export]
    use crate::records::{BusyStats, ClusterEvent, ClusterStats, PeerStats, Stats};
    #[pymodule_export]
    use crate::tables::{TableInfo, tables};
    #[pymodule_export]
    use crate::throttle::Throttle;
    #[pymodule_export]
    use crate::web::{
        ClientAddress, Headers, HttpDecision, Middleware, SharedThrottle, application_table_name,
        client_address, nearest, parse_address,
    };

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        crate::raw::replace_allow::<Domain>(module.py())?;
        crate::raw::replace_allow::<Throttle>(module.py())
    }

    #[pymodule_export]
    const UNLIMITED: u64 = dthrottle::UNLIMITED;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
