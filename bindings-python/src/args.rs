//! Converts arguments of Python calls: tags, costs, times, flags, names.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use dthrottle::convert::{cost_from_f64, duration_from_secs};
use dthrottle::{Error, ErrorKind};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDelta, PyFloat, PyString};

use crate::errors::CallError;

/// The maximum number of characters of a value that a message quotes.
const QUOTED: usize = 60;

/// An optional argument. Unlike an `Option` it distinguishes an absent argument from `None`. It is
/// converted in the body of the method, where its name is known and a panic is caught.
#[derive(Clone, Copy)]
pub(crate) struct Arg<'a, 'py>(Option<Borrowed<'a, 'py, PyAny>>);

impl<'py> Arg<'_, 'py> {
    pub(crate) const ABSENT: Self = Arg(None);

    /// The argument as Python's object, which may be `None`.
    pub(crate) fn value(&self) -> Option<&Bound<'py, PyAny>> {
        self.0.as_deref()
    }

    /// A cost, if it was given.
    #[inline]
    pub(crate) fn cost(self) -> Result<Option<u64>, CallError> {
        self.0.map(|value| cost(&value)).transpose()
    }

    /// A time in seconds, if it was given.
    #[inline]
    pub(crate) fn seconds(self, name: &str) -> Result<Option<Duration>, CallError> {
        self.0.map(|value| seconds(name, &value)).transpose()
    }

    /// A number that counts something, if it was given.
    pub(crate) fn number(self, name: &str) -> Result<Option<u64>, CallError> {
        self.0.map(|value| number(name, &value)).transpose()
    }

    /// A boolean, if it was given.
    #[inline]
    pub(crate) fn flag(self, name: &str) -> Result<Option<bool>, CallError> {
        self.0.map(|value| flag(name, &value)).transpose()
    }
}

impl<'a, 'py> From<Option<Borrowed<'a, 'py, PyAny>>> for Arg<'a, 'py> {
    #[inline]
    fn from(value: Option<Borrowed<'a, 'py, PyAny>>) -> Self {
        Arg(value)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Arg<'a, 'py> {
    type Error = Infallible;

    #[inline]
    fn extract(value: Borrowed<'a, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(Arg(Some(value)))
    }
}

/// A tag: the UTF-8 of text, or bytes. Neither is copied.
#[inline]
pub(crate) fn tag<'a>(value: &'a Bound<'_, PyAny>) -> Result<&'a [u8], CallError> {
    bytes("tag", value)
}

/// The UTF-8 of text, or bytes, of the argument `name`.
#[inline]
pub(crate) fn bytes<'a>(name: &str, value: &'a Bound<'_, PyAny>) -> Result<&'a [u8], CallError> {
    // Most values are exactly a `str`, and that is faster to check than a subclass.
    if let Ok(text) = value.cast_exact::<PyString>() {
        Ok(utf8(name, text)?.as_bytes())
    } else if let Ok(text) = value.cast::<PyString>() {
        Ok(utf8(name, text)?.as_bytes())
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        Ok(bytes.as_bytes())
    } else {
        Err(wrong(name, "str or bytes", value))
    }
}

/// Tags: any iterable except `str` and `bytes`, which are one tag each.
pub(crate) fn tags<'py>(value: &Bound<'py, PyAny>) -> Result<Vec<Bound<'py, PyAny>>, CallError> {
    let wrong = || wrong("tags", "an iterable of str or bytes", value);
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() {
        return Err(wrong());
    }
    let tags = value.try_iter().or_else(|error| rejected(error, value, wrong))?;
    Ok(tags.collect::<PyResult<_>>()?)
}

/// A cost: an `int`, or anything that can be an index, or a whole `float`.
#[inline]
pub(crate) fn cost(value: &Bound<'_, PyAny>) -> Result<u64, CallError> {
    if let Ok(float) = value.cast_exact::<PyFloat>() {
        return Ok(cost_from_f64(float.value())?);
    }
    value.extract::<u64>().or_else(|error| {
        if let Ok(float) = value.cast::<PyFloat>() {
            return Ok(cost_from_f64(float.value())?);
        }
        rejected(error, value, || {
            let quoted = quote(value);
            let message = format!("`cost` must be an int from 0 to 2**64 - 1, got {quoted}");
            Error::new(ErrorKind::Cost, message).into()
        })
    })
}

/// A time: seconds, or a `timedelta`.
pub(crate) fn seconds(name: &str, value: &Bound<'_, PyAny>) -> Result<Duration, CallError> {
    let seconds = match value.extract::<f64>() {
        Ok(seconds) => seconds,
        Err(error) => match timedelta_seconds(value)? {
            Some(seconds) => seconds,
            None => rejected(error, value, || {
                wrong(name, "a number of seconds from 0 to 100 years, or a timedelta", value)
            })?,
        },
    };
    Ok(duration_from_secs(name, seconds)?)
}

/// The seconds of a `timedelta`; `None` for any other value.
pub(crate) fn timedelta_seconds(value: &Bound<'_, PyAny>) -> Result<Option<f64>, CallError> {
    match value.cast::<PyDelta>() {
        Ok(delta) => Ok(Some(delta.call_method0("total_seconds")?.extract()?)),
        Err(_) => Ok(None),
    }
}

/// A number that counts something: an `int`, or anything that can be an index.
fn number(name: &str, value: &Bound<'_, PyAny>) -> Result<u64, CallError> {
    value.extract::<u64>().or_else(|error| {
        rejected(error, value, || wrong(name, "an int from 0 to 2**64 - 1", value))
    })
}

/// `True` or `False`; other values are errors, even if they are truthy.
pub(crate) fn flag(name: &str, value: &Bound<'_, PyAny>) -> Result<bool, CallError> {
    value
        .extract::<bool>()
        .or_else(|error| rejected(error, value, || wrong(name, "True or False", value)))
}

/// Text.
pub(crate) fn text<'a>(name: &str, value: &'a Bound<'_, PyAny>) -> Result<&'a str, CallError> {
    match value.cast::<PyString>() {
        Ok(text) => utf8(name, text),
        Err(_) => Err(wrong(name, "str", value)),
    }
}

/// A path: `str`, or anything with `__fspath__` that gives one.
pub(crate) fn path(value: &Bound<'_, PyAny>) -> Result<PathBuf, CallError> {
    value
        .extract::<PathBuf>()
        .or_else(|error| rejected(error, value, || wrong("path", "str or os.PathLike", value)))
}

#[inline]
fn utf8<'a>(name: &str, text: &'a Bound<'_, PyString>) -> Result<&'a str, CallError> {
    text.to_str().map_err(|_| {
        wrong(name, "text without lone surrogates (replace them, or pass bytes)", text)
    })
}

/// The error about an argument.
#[cold]
pub(crate) fn wrong(name: &str, right: &str, value: &Bound<'_, PyAny>) -> CallError {
    CallError::argument(format!("`{name}` must be {right}, got {}", quote(value)))
}

/// The error about a value that Python could not convert. An exception that does not mean a bad value
/// was raised by the caller's own code, such as a `__float__`, and is passed on.
#[cold]
fn rejected<T>(
    error: PyErr,
    value: &Bound<'_, PyAny>,
    make: impl FnOnce() -> CallError,
) -> Result<T, CallError> {
    let py = value.py();
    let bad_value = error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyOverflowError>(py)
        || error.is_instance_of::<PyValueError>(py);
    Err(if bad_value { make() } else { error.into() })
}

/// A value for a message: its `repr`, shortened, or its type if `repr` fails.
#[cold]
pub(crate) fn quote(value: &Bound<'_, PyAny>) -> String {
    let Ok(repr) = value.repr() else {
        return format!("an object of type {}", type_name(value));
    };
    let repr = repr.to_string_lossy();
    match repr.char_indices().nth(QUOTED) {
        None => repr.into_owned(),
        Some((end, _)) => format!("{}...", &repr[..end]),
    }
}

/// The name of a value's type.
pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    let name = value.get_type().name();
    name.map_or_else(|_| "unknown".into(), |name| name.to_string_lossy().into())
}
