//! Converts errors to Python exceptions. The classes are in `python/dthrottle/errors.py`.
//!
//! The body of every exported method runs inside [`guard`], because PyO3 turns a panic into a
//! `PanicException`, which `except Exception` does not catch.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dthrottle::{Error, ErrorKind};
use pyo3::prelude::*;

/// Why a call from Python failed.
pub(crate) enum CallError {
    /// An error of the core, or of this binding.
    Core(Error),
    /// An exception of Python code that was called from here.
    Python(PyErr),
}

impl CallError {
    /// The error about an argument that this binding checks.
    #[cold]
    pub(crate) fn argument(message: impl Into<String>) -> CallError {
        Error::new(ErrorKind::Argument, message).into()
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> CallError {
        CallError::Core(error)
    }
}

impl From<PyErr> for CallError {
    fn from(error: PyErr) -> CallError {
        CallError::Python(error)
    }
}

/// Runs the body of an exported method. Errors and panics become exceptions.
#[inline]
pub(crate) fn guard<T>(body: impl FnOnce() -> Result<T, CallError>) -> PyResult<T> {
    // AssertUnwindSafe: a panic leaves the buckets of the core valid, and no body changes other data
    // in place.
    // The error becomes an exception inside the closure, because a `CallError` is large to return.
    let body = || body().map_err(exception);
    catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|panic| Err(exception(internal(&*panic).into())))
}

/// Runs a body and returns its value, or `None` if it fails or panics.
#[inline]
pub(crate) fn ok<T>(body: impl FnOnce() -> Result<T, CallError>) -> Option<T> {
    // AssertUnwindSafe: as in `guard`.
    catch_unwind(AssertUnwindSafe(body)).ok()?.ok()
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
fn exception(error: CallError) -> PyErr {
    match error {
        CallError::Python(error) => error,
        CallError::Core(error) => Python::attach(|py| {
            // If the class cannot be found, that failure is the exception.
            instance(py, &error).map_or_else(|failure| failure, PyErr::from_value)
        }),
    }
}

fn instance<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    class(py, error.kind())?.call1((error.to_string(), error.field(), error.line()))
}

/// Looks the class up each time, because importing the module again creates new classes.
fn class(py: Python<'_>, kind: ErrorKind) -> PyResult<Bound<'_, PyAny>> {
    py.import("dthrottle.errors")?.getattr("BY_KIND")?.get_item(kind.name())
}

/// Panics inside the guard, so that tests can see what a bug would look like.
#[pyfunction]
pub(crate) fn _panic(message: String) -> PyResult<()> {
    guard(|| panic!("{message}"))
}
