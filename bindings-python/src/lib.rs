//! dthrottle for Python: the native module `dthrottle._dthrottle`.
//!
//! It converts arguments, calls the core once and converts the answer. `docs/semantics.md` defines
//! every call. The public package, its exceptions and its types are in `python/dthrottle`.
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
    use std::sync::atomic::{AtomicI64, Ordering};

    use pyo3::exceptions::PyImportError;

    /// No interpreter has this number.
    const NONE: i64 = -1;

    #[pymodule_export]
    use crate::busy::{BusyThrottle, Turn};
    #[pymodule_export]
    use crate::clock::ManualClock;
    #[pymodule_export]
    use crate::decision::{_restore_decision, Decision};
    #[pymodule_export]
    use crate::domain::{Domain, Rule};
    #[pymodule_export]
    use crate::errors::_panic;
    #[pymodule_export]
    use crate::records::{BusyStats, ClusterEvent, ClusterStats, PeerStats, Stats};
    #[pymodule_export]
    use crate::tables::{TableInfo, remove_table, tables};
    #[pymodule_export]
    use crate::throttle::Throttle;
    #[pymodule_export]
    use crate::web::{
        ClientAddress, Headers, HttpDecision, Middleware, SharedThrottle, application_table_name,
        client_address, nearest, parse_address,
    };

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        let py = module.py();
        // Classes are in static memory, so they belong to the interpreter that loads this first.
        // `_load.py` loads a copy of this file for another one.
        static INTERPRETER: AtomicI64 = AtomicI64::new(NONE);
        let id = crate::raw::interpreter_id(py);
        let first = INTERPRETER.compare_exchange(NONE, id, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_err_and(|first| first != id) {
            return Err(PyImportError::new_err("dthrottle is loaded once for all subinterpreters"));
        }
        crate::raw::replace_allow::<Domain>(py)?;
        crate::raw::replace_allow::<Throttle>(py)
    }

    #[pymodule_export]
    const UNLIMITED: u64 = dthrottle::UNLIMITED;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python modules use")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
