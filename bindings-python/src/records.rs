//! Records of core as Python classes: a getter for every field, `==`, `hash` and `repr`. The fields
//! come from core's lists; the descriptions there are the docstrings here.

use dthrottle::records::{Field, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::errors::{Fault, guard};

/// A value of a record as Python's own object. Times are seconds.
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

/// What `repr` says of a record.
pub(crate) fn repr(
    py: Python<'_>,
    name: &str,
    fields: &[Field],
    values: &[Value<'_>],
) -> Result<String, Fault> {
    let mut shown = Vec::new();
    for (field, value) in fields.iter().zip(values) {
        shown.push(format!("{}={}", field.name, object(py, value)?.repr()?.to_string_lossy()));
    }
    Ok(format!("{name}({})", shown.join(", ")))
}

/// A class for a record. Goes with the module's name in brackets.
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

/// The records as core has them.
mod core {
    pub(super) use dthrottle::busy::BusyStats;
    pub(super) use dthrottle::{ClusterEvent, ClusterStats, PeerStats, Stats};
}

dthrottle::records!(Stats, class, "dthrottle");
dthrottle::records!(ClusterStats, class, "dthrottle");
dthrottle::records!(PeerStats, class, "dthrottle");
dthrottle::records!(ClusterEvent, class, "dthrottle");
dthrottle::records!(BusyStats, class, "dthrottle.busy");
