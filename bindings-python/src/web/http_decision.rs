//! The decision about an HTTP request, for the adapters.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use dthrottle::web::{self, Action};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::Middleware;
use super::convert::{Pairs, body_of, pairs};
use crate::decision::Decision;
use crate::errors::guard;

/// What to do with a request.
#[pyclass(frozen, module = "dthrottle._dthrottle")]
pub(crate) struct HttpDecision {
    middleware: Py<Middleware>,
    decided: web::HttpDecision,
    decision: Py<Decision>,
    fields: Py<PyList>,
    /// Whether the request, or its refusal, counts as delayed.
    is_delayed: AtomicBool,
    /// Units that a refund gives back. The first call that may refund sets them to 0.
    taken: AtomicU64,
}

#[pymethods]
impl HttpDecision {
    /// Whether to refuse the request.
    #[getter]
    fn refused(&self) -> bool {
        matches!(self.decided.action, Action::Refuse(_))
    }

    /// Seconds for which to delay the request, or its refusal. If not 0, end_delay must be called.
    #[getter]
    fn delay(&self) -> f64 {
        delay_of(&self.decided).as_secs_f64()
    }

    /// The throttle's decision.
    #[getter]
    fn decision(&self, py: Python<'_>) -> Py<Decision> {
        self.decision.clone_ref(py)
    }

    /// The header fields of the response, as pairs of name and value.
    #[getter]
    fn fields(&self, py: Python<'_>) -> Py<PyList> {
        self.fields.clone_ref(py)
    }

    /// Whole seconds after which the same request would pass, at least 1; None if the options turn
    /// Retry-After off.
    #[getter]
    fn retry_after(&self) -> Option<u64> {
        let shows = self.middleware.get().middleware.options().retry_after;
        shows.then(|| web::retry_after(&self.decided.decision))
    }

    /// Returns the response to a refusal: its status, the header fields that only refusals have, and
    /// its content. body replaces the body of the options.
    #[pyo3(signature = (body=None))]
    fn refusal<'py>(
        &self,
        py: Python<'py>,
        body: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(u16, Pairs<'py>, Bound<'py, PyBytes>)> {
        guard(|| {
            let body = body.map(body_of).transpose()?;
            let middleware = &self.middleware.get().middleware;
            let refusal = middleware.refusal(&self.decided.decision, body.as_ref());
            let own = refusal.fields.len() - self.fields.bind(py).len();
            let fields = pairs(py, &refusal.fields[..own]);
            Ok((refusal.status, fields, PyBytes::new(py, &refusal.body)))
        })
    }

    /// Ends a delay, so that another request may be delayed. Refunds the request if the client has
    /// left. Only the first call has an effect.
    fn end_delay(&self, py: Python<'_>, is_gone: bool) -> PyResult<()> {
        guard(|| {
            self.leave(is_gone);
            self.middleware.get().warn(py);
            Ok(())
        })
    }

    /// Refunds the request if the options ask for it for such a response and end_delay has not
    /// refunded it. Only the first call has an effect.
    fn finish(&self, py: Python<'_>, is_success: bool) -> PyResult<()> {
        guard(|| {
            let this = self.middleware.get();
            let taken = self.taken.swap(0, Ordering::Relaxed);
            this.middleware.finish(&self.decided.tag, taken, is_success);
            this.warn(py);
            Ok(())
        })
    }
}

impl HttpDecision {
    pub(super) fn new(
        middleware: Py<Middleware>,
        decided: web::HttpDecision,
        decision: Py<Decision>,
        fields: Py<PyList>,
    ) -> HttpDecision {
        HttpDecision {
            is_delayed: AtomicBool::new(!delay_of(&decided).is_zero()),
            taken: AtomicU64::new(decided.taken),
            middleware,
            decided,
            decision,
            fields,
        }
    }

    fn leave(&self, is_gone: bool) {
        // Relaxed, as in `finish`: the swaps order nothing else.
        if self.is_delayed.swap(false, Ordering::Relaxed) {
            let taken = if is_gone { self.taken.swap(0, Ordering::Relaxed) } else { 0 };
            self.middleware.get().middleware.end_delay(&self.decided.tag, taken, is_gone);
        }
    }
}

/// Ends the delay of a request whose coroutine was cancelled, or whose function of the application was
/// interrupted, before the adapter began to wait.
impl Drop for HttpDecision {
    fn drop(&mut self) {
        self.leave(true);
    }
}

fn delay_of(decided: &web::HttpDecision) -> Duration {
    match decided.action {
        Action::Pass => Duration::ZERO,
        Action::Delay(delay) | Action::Refuse(delay) => delay,
    }
}
