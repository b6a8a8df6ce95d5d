//! The answer to a check.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use dthrottle::records::Value;
use pyo3::prelude::*;

use crate::domain::Rule;
use crate::errors::guard;
use crate::records;

macro_rules! class {
    ([] $(#[$about:meta])+ $record:ident, first $first:literal {
        $($(#[$doc:meta])+ $field:ident: $kind:ident,)*
    }) => {
        $(#[$about])+
        ///
        /// It is true when allowed; times are seconds, rules are names.
        #[pyclass(frozen, eq, hash, module = "dthrottle")]
        pub(crate) struct $record {
            answer: dthrottle::$record,
            /// The rules of the domain, for their names.
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
        }
    };
}

dthrottle::records!(Decision, class);

impl Decision {
    #[inline]
    pub(crate) fn new(answer: dthrottle::Decision, rules: Arc<[Rule]>) -> Decision {
        Decision { answer, rules }
    }

    /// What the core said.
    pub(crate) fn answer(&self) -> &dthrottle::Decision {
        &self.answer
    }

    /// Everything that Python sees.
    fn values(&self) -> [Value<'_>; dthrottle::Decision::FIELDS.len()] {
        self.answer.values().map(|value| self.named(value))
    }

    /// A value, with the name of a rule for its index.
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
