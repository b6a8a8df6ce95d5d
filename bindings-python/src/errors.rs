//! How a failure becomes a Python exception. The classes are in `python/dthrottle/errors.py`.
//!
//! Every body of an exported method runs inside [`guard`]: PyO3 would turn a panic into a
//! `PanicException`, which `except Exception` does not catch.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dthrottle::{Error, ErrorKind};
use pyo3::prelude::*;

/// What a body can fail with.
pub(crate) enum Fault {
    /// An error of the core, or one that is made like one.
    Core(Error),
    /// An exception that Python code raised while it was called from here.
    Python(PyErr),
}

impl Fault {
    /// The error about an argument of which only this binding can see that it is wrong.
    #[cold]
    pub(crate) fn argument(message: impl Into<String>) -> Fault {
        Error::new(ErrorKind::Argument, message).into()
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Core(error)
    }
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Fault {
        Fault::Python(error)
    }
}

/// Runs the body of an exported method: whatever goes wrong in it is an `Exception`.
#[inline]
pub(crate) fn guard<T>(body: impl FnOnce() -> Result<T, Fault>) -> PyResult<T> {
    // AssertUnwindSafe: the core keeps its buckets whole through a panic, and nothing here changes
    // in place.
    // Turned into an exception inside, because a fault is large, and would be copied.
    let body = || body().map_err(exception);
    catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|panic| Err(exception(internal(&*panic).into())))
}

#[cold]
fn internal(panic: &(dyn Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let message = format!("a bug in dthrottle, please report it: {text}");
    Error::new(ErrorKind::Internal, message)
}

#[cold]
fn exception(fault: Fault) -> PyErr {
    match fault {
        Fault::Python(error) => error,
        Fault::Core(error) => Python::attach(|py| {
            // Without its class the exception is the reason why there is none.
            instance(py, &error).map_or_else(|failure| failure, PyErr::from_value)
        }),
    }
}

fn instance<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    class(py, error.kind())?.call1((error.to_string(), error.field(), error.line()))
}

/// Looked up each time: every interpreter of the process has classes of its own.
fn class(py: Python<'_>, kind: ErrorKind) -> PyResult<Bound<'_, PyAny>> {
    py.import("dthrottle.errors")?.getattr("BY_KIND")?.get_item(kind.name())
}

/// Panics inside the guard, so that tests can see what a bug would look like.
#[pyfunction]
pub(crate) fn _panic(message: String) -> PyResult<()> {
    guard(|| panic!("{message}"))
}
