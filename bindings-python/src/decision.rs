//! The answer to a check.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::guard;

/// The answer to a check. It is true when allowed; times are seconds.
#[pyclass(frozen, eq, hash, module = "dthrottle")]
pub(crate) struct Decision {
    answer: dthrottle::Decision,
    /// The rule that refused. The name is shared with the domain, not copied.
    rule: Option<Arc<str>>,
}

impl Decision {
    #[inline]
    pub(crate) fn new(answer: dthrottle::Decision, rule: Option<Arc<str>>) -> Decision {
        Decision { answer, rule }
    }

    /// What the core said.
    pub(crate) fn answer(&self) -> &dthrottle::Decision {
        &self.answer
    }

    /// Everything that Python sees, for comparison.
    fn fields(&self) -> ([bool; 2], Option<&str>, [u64; 3], i64, [Duration; 3]) {
        let answer = &self.answer;
        (
            [answer.allowed, answer.dry_run],
            self.rule.as_deref(),
            [answer.granted, answer.limit, answer.remaining],
            answer.balance,
            [answer.wait, answer.retry_after, answer.reset_after],
        )
    }
}

impl PartialEq for Decision {
    fn eq(&self, other: &Decision) -> bool {
        self.fields() == other.fields()
    }
}

impl Hash for Decision {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fields().hash(state);
    }
}

#[pymethods]
impl Decision {
    /// Go on.
    #[getter]
    fn allowed(&self) -> bool {
        self.answer.allowed
    }

    /// Units taken (by a peek: that would be): the cost when allowed, fewer with `partial`, 0 when
    /// refused or when only dry run allows it.
    #[getter]
    fn granted(&self) -> u64 {
        self.answer.granted
    }

    /// Wait so many seconds before going on; 0 unless `max_wait` was given.
    #[getter]
    fn wait(&self) -> f64 {
        self.answer.wait.as_secs_f64()
    }

    /// When refused: seconds until this check would pass without waiting; else 0.
    #[getter]
    fn retry_after(&self) -> f64 {
        self.answer.retry_after.as_secs_f64()
    }

    /// Seconds until every bucket of the tag is full again.
    #[getter]
    fn reset_after(&self) -> f64 {
        self.answer.reset_after.as_secs_f64()
    }

    /// The burst of the deciding rule; `UNLIMITED` in a domain without rules.
    #[getter]
    fn limit(&self) -> u64 {
        self.answer.limit
    }

    /// Whole units left under the deciding rule; `UNLIMITED` in a domain without rules.
    #[getter]
    fn remaining(&self) -> u64 {
        self.answer.remaining
    }

    /// The same, but negative when the bucket is in debt.
    #[getter]
    fn balance(&self) -> i64 {
        self.answer.balance
    }

    /// The name of the rule that refused; None when none did.
    #[getter]
    fn rule(&self) -> Option<&str> {
        self.rule.as_deref()
    }

    /// Refused, but allowed because the domain is in dry run.
    #[getter]
    fn dry_run(&self) -> bool {
        self.answer.dry_run
    }

    fn __bool__(&self) -> bool {
        self.answer.allowed
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        guard(|| {
            let rule = match self.rule() {
                Some(name) => PyString::new(py, name).repr()?.to_string_lossy().into(),
                None => "None".to_string(),
            };
            Ok(format!(
                "Decision(allowed={}, granted={}, wait={:?}, retry_after={:?}, reset_after={:?}, \
                 limit={}, remaining={}, balance={}, rule={rule}, dry_run={})",
                python(self.allowed()),
                self.granted(),
                self.wait(),
                self.retry_after(),
                self.reset_after(),
                self.limit(),
                self.remaining(),
                self.balance(),
                python(self.dry_run()),
            ))
        })
    }
}

/// A truth as Python spells it.
fn python(truth: bool) -> &'static str {
    if truth { "True" } else { "False" }
}
