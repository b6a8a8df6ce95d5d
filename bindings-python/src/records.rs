//! The records of the core as Python classes with a getter for every field, `==`, `hash` and `repr`.
//! The fields and their docstrings come from the lists of the core.

use dthrottle::records::{Field, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::errors::{CallError, guard};

/// Converts a value of a record to a Python object. Times are seconds.
pub(crate) fn object<'py>(py: Python<'py>, value: &Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match *value {
        Value::Flag(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Value::Count(number) | Value::Units(number) | Value::Id(number) => {
            PyInt::new(py, *number).into_any()
        }
        Value::Balance(number) => PyInt::new(py, *number).into_any(),
        Value::Time(time) | Value::Millis(time) => PyFloat::new(py, time.as_secs_f64()).into_any(),
        Value::Rule(index) => index.into_pyobject(py)?,
        Value::Name(name) => name.into_pyobject(py)?,
        Value::Word(word) | Value::State(word) => PyString::new(py, word).into_any(),
        Value::Address(address) => address.map(|address| address.to_string()).into_pyobject(py)?,
        Value::Peers(peers) => {
            let peers = peers.iter().map(|peer| Bound::new(py, PeerStats(peer.clone())));
            PyList::new(py, peers.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Value::Counts(counts) => {
            let dict = PyDict::new(py);
            counts.iter().try_for_each(|(name, count)| dict.set_item(name, count))?;
            dict.into_any()
        }
    })
}

/// The `repr` of a record.
pub(crate) fn repr(
    py: Python<'_>,
    name: &str,
    fields: &[Field],
    values: &[Value<'_>],
) -> Result<String, CallError> {
    let mut shown = Vec::new();
    for (field, value) in fields.iter().zip(values) {
        shown.push(format!("{}={}", field.name, object(py, value)?.repr()?.to_string_lossy()));
    }
    Ok(format!("{name}({})", shown.join(", ")))
}

/// Defines the class of a record. The brackets contain the name of its module.
macro_rules! class {
    ([$module:literal] $(#[$about:meta])+ $record:ident, first $first:literal {
        $($(#[$doc:meta])+ $field:ident: $kind:ident,)*
    }) => {
        $(#[$about])+
        #[pyclass(frozen, eq, hash, module = $module)]
        #[derive(Clone, PartialEq, Eq, Hash)]
        pub(crate) struct $record(pub(crate) core::$record);

        #[pymethods]
        impl $record {
            $($(#[$doc])+
            #[getter]
            fn $field<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                object(py, &Value::$kind(&self.0.$field))
            })*

            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                let fields = core::$record::FIELDS;
                guard(|| repr(py, stringify!($record), fields, &self.0.values()))
            }
        }
    };
}

/// The records of the core.
mod core {
    pub(super) use dthrottle::busy::BusyStats;
    pub(super) use dthrottle::{ClusterEvent, ClusterStats, PeerStats, Stats};
}

dthrottle::records!(Stats, class, "dthrottle");
dthrottle::records!(ClusterStats, class, "dthrottle");
dthrottle::records!(PeerStats, class, "dthrottle");
dthrottle::records!(ClusterEvent, class, "dthrottle");
dthrottle::records!(BusyStats, class, "dthrottle.busy");
