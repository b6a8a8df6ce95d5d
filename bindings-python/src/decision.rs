//! `Decision`: the answer to a check.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use dthrottle::records::Value;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::domain::Rule;
use crate::errors::{CallError, guard};
use crate::records;

macro_rules! class {
    ([] $(#[$about:meta])+ $record:ident, first $first:literal {
        $($(#[$doc:meta])+ $field:ident: $kind:ident,)*
    }) => {
        $(#[$about])+
        ///
        /// It is true if the check was allowed. Times are seconds, rules are names.
        #[pyclass(frozen, eq, hash, module = "dthrottle")]
        pub(crate) struct $record {
            answer: dthrottle::$record,
            /// The rules of the domain, which have the names.
            rules: Arc<[Rule]>,
        }

        #[pymethods]
        impl $record {
            $($(#[$doc])+
            #[getter]
            #[inline]
            fn $field<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                records::object(py, &self.named(Value::$kind(&self.answer.$field)))
            })*

            fn __bool__(&self) -> bool {
                self.answer.allowed
            }

            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                let fields = dthrottle::$record::FIELDS;
                guard(|| records::repr(py, stringify!($record), fields, &self.values()))
            }

            fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
                guard(|| {
                    let fields = self.values().map(|value| pickled(py, &value));
                    let fields = PyTuple::new(py, fields.into_iter().collect::<PyResult<Vec<_>>>()?)?;
                    let module = py.import("dthrottle._dthrottle")?;
                    Ok((module.getattr("_restore_decision")?, (fields,)))
                })
            }
        }

        /// Makes a decision from what `__reduce__` gave.
        #[pyfunction]
        pub(crate) fn _restore_decision(fields: &Bound<'_, PyTuple>) -> PyResult<$record> {
            guard(|| {
                let (mut answer, mut rules) = (dthrottle::$record::unlimited(0), Vec::new());
                let mut fields = fields.iter();
                // A version with fewer fields may have pickled it.
                $(if let Some(field) = fields.next() {
                    answer.$field = Unpickled::unpickled(&field, &mut rules)?;
                })*
                Ok($record::new(answer, rules.into()))
            })
        }
    };
}

dthrottle::records!(Decision, class);

impl Decision {
    #[inline]
    pub(crate) fn new(answer: dthrottle::Decision, rules: Arc<[Rule]>) -> Decision {
        Decision { answer, rules }
    }

    /// The decision of the core.
    pub(crate) fn answer(&self) -> &dthrottle::Decision {
        &self.answer
    }

    /// The values of all fields, with the names of rules.
    fn values(&self) -> [Value<'_>; dthrottle::Decision::FIELDS.len()] {
        self.answer.values().map(|value| self.named(value))
    }

    /// Replaces the index of a rule by its name.
    #[inline]
    fn named<'a>(&'a self, value: Value<'a>) -> Value<'a> {
        match value {
            Value::Rule(index) => {
                let rule = index.and_then(|index| self.rules.get(index));
                Value::Name(rule.map(Rule::name))
            }
            other => other,
        }
    }
}

/// The function that restores an object, and its arguments.
type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyTuple>,));

/// A field for pickle. Floats would round times.
fn pickled<'py>(py: Python<'py>, value: &Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Time(time) => {
            Ok((time.as_secs(), time.subsec_nanos()).into_pyobject(py)?.into_any())
        }
        value => records::object(py, value),
    }
}

/// A field that [`pickled`] wrote. A rule gets the index of its name in `rules`.
trait Unpickled: Sized {
    fn unpickled(field: &Bound<'_, PyAny>, rules: &mut Vec<Rule>) -> Result<Self, CallError>;
}

impl Unpickled for bool {
    fn unpickled(field: &Bound<'_, PyAny>, _: &mut Vec<Rule>) -> Result<bool, CallError> {
        Ok(field.extract()?)
    }
}

impl Unpickled for u64 {
    fn unpickled(field: &Bound<'_, PyAny>, _: &mut Vec<Rule>) -> Result<u64, CallError> {
        Ok(field.extract()?)
    }
}

impl Unpickled for i64 {
    fn unpickled(field: &Bound<'_, PyAny>, _: &mut Vec<Rule>) -> Result<i64, CallError> {
        Ok(field.extract()?)
    }
}

impl Unpickled for Duration {
    fn unpickled(field: &Bound<'_, PyAny>, _: &mut Vec<Rule>) -> Result<Duration, CallError> {
        let (seconds, nanos) = field.extract::<(u64, u32)>()?;
        // More nanoseconds would carry over into the seconds, which may overflow.
        if nanos >= 1_000_000_000 {
            let message = format!("nanoseconds must be less than 1,000,000,000, got {nanos}");
            return Err(CallError::argument(message));
        }
        Ok(Duration::new(seconds, nanos))
    }
}

impl Unpickled for Option<usize> {
    fn unpickled(field: &Bound<'_, PyAny>, rules: &mut Vec<Rule>) -> Result<Self, CallError> {
        let Some(name) = field.extract::<Option<String>>()? else { return Ok(None) };
        rules.push(Rule::named(&name));
        Ok(Some(rules.len() - 1))
    }
}

impl PartialEq for Decision {
    fn eq(&self, other: &Decision) -> bool {
        self.values() == other.values()
    }
}

impl Hash for Decision {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.values().hash(state);
    }
}
