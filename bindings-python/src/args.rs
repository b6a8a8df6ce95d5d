//! Python values to what the core takes: tags, costs, times, flags, names.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use dthrottle::convert::{bad_cost, cost_from_f64, duration_from_secs};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyString};

use crate::errors::Fault;

/// How much of a value is quoted in a message.
const QUOTED: usize = 60;

/// An argument that may be left out. Unlike an `Option` it tells that from `None`, and it is
/// converted in the body, where its name is known and a panic is caught.
#[derive(Clone, Copy)]
pub(crate) struct Arg<'a, 'py>(Option<Borrowed<'a, 'py, PyAny>>);

impl<'py> Arg<'_, 'py> {
    pub(crate) const ABSENT: Self = Arg(None);

    /// Whatever was given, `None` included.
    pub(crate) fn value(&self) -> Option<&Bound<'py, PyAny>> {
        self.0.as_deref()
    }

    /// A cost, if it was given.
    #[inline]
    pub(crate) fn cost(self) -> Result<Option<u64>, Fault> {
        self.0.map(|value| cost(&value)).transpose()
    }

    /// A time in seconds, if it was given.
    #[inline]
    pub(crate) fn seconds(self, name: &str) -> Result<Option<Duration>, Fault> {
        self.0.map(|value| seconds(name, &value)).transpose()
    }

    /// A number that counts something, if it was given.
    pub(crate) fn number(self, name: &str) -> Result<Option<u64>, Fault> {
        self.0.map(|value| number(name, &value)).transpose()
    }

    /// Yes or no, if it was given.
    #[inline]
    pub(crate) fn flag(self, name: &str) -> Result<Option<bool>, Fault> {
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

/// A tag: text as its UTF-8, or bytes; neither is copied.
#[inline]
pub(crate) fn tag<'a>(value: &'a Bound<'_, PyAny>) -> Result<&'a [u8], Fault> {
    bytes("tag", value)
}

/// A name that may be any bytes, in the same way.
#[inline]
pub(crate) fn bytes<'a>(name: &str, value: &'a Bound<'_, PyAny>) -> Result<&'a [u8], Fault> {
    // Nearly always it is just a `str`, which is seen sooner than that it is some kind of one.
    if let Ok(text) = value.cast_exact::<PyString>() {
        Ok(utf8(name, text)?.as_bytes())
    } else if let Ok(text) = value.cast::<PyString>() {
        Ok(utf8(name, text)?.as_bytes())
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        Ok(bytes.as_bytes())
    } else {
        let quoted = quote(value);
        Err(Fault::argument(format!("{name} {quoted}: must be str or bytes")))
    }
}

/// Tags: whatever can be iterated over, except a single one of them.
pub(crate) fn tags<'py>(value: &Bound<'py, PyAny>) -> Result<Vec<Bound<'py, PyAny>>, Fault> {
    let fault = || {
        let quoted = quote(value);
        Fault::argument(format!("tags {quoted}: must be an iterable of str or bytes"))
    };
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() {
        return Err(fault());
    }
    let tags = value.try_iter().or_else(|error| rejected(error, value, fault))?;
    Ok(tags.collect::<PyResult<_>>()?)
}

/// A cost: an `int`, or anything that can be an index, or a whole `float`.
#[inline]
pub(crate) fn cost(value: &Bound<'_, PyAny>) -> Result<u64, Fault> {
    if let Ok(float) = value.cast_exact::<PyFloat>() {
        return Ok(cost_from_f64(float.value())?);
    }
    value.extract::<u64>().or_else(|error| {
        if let Ok(float) = value.cast::<PyFloat>() {
            return Ok(cost_from_f64(float.value())?);
        }
        rejected(error, value, || bad_cost(quote(value)).into())
    })
}

/// A time in seconds.
pub(crate) fn seconds(name: &str, value: &Bound<'_, PyAny>) -> Result<Duration, Fault> {
    match value.extract::<f64>() {
        Ok(number) => Ok(duration_from_secs(name, number)?),
        Err(error) => rejected(error, value, || {
            Fault::argument(format!(
                "{name} {}: must be a number of seconds from 0 to 100 years",
                quote(value)
            ))
        }),
    }
}

/// A number that counts something: an `int`, or anything that can be an index.
fn number(name: &str, value: &Bound<'_, PyAny>) -> Result<u64, Fault> {
    value.extract::<u64>().or_else(|error| {
        rejected(error, value, || {
            Fault::argument(format!("{name} {}: must be an int from 0 to 2**64 - 1", quote(value)))
        })
    })
}

/// `True` or `False`, and nothing that merely counts as one of them.
pub(crate) fn flag(name: &str, value: &Bound<'_, PyAny>) -> Result<bool, Fault> {
    value.extract::<bool>().or_else(|error| {
        rejected(error, value, || {
            Fault::argument(format!("{name} {}: must be True or False", quote(value)))
        })
    })
}

/// Text.
pub(crate) fn text<'a>(name: &str, value: &'a Bound<'_, PyAny>) -> Result<&'a str, Fault> {
    match value.cast::<PyString>() {
        Ok(text) => utf8(name, text),
        Err(_) => {
            let quoted = quote(value);
            Err(Fault::argument(format!("{name} {quoted}: must be str")))
        }
    }
}

/// A path: `str`, or anything with `__fspath__` that gives one.
pub(crate) fn path(value: &Bound<'_, PyAny>) -> Result<PathBuf, Fault> {
    value.extract::<PathBuf>().or_else(|error| {
        rejected(error, value, || {
            Fault::argument(format!("path {}: must be str or os.PathLike", quote(value)))
        })
    })
}

#[inline]
fn utf8<'a>(name: &str, text: &'a Bound<'_, PyString>) -> Result<&'a str, Fault> {
    text.to_str().map_err(|_| {
        Fault::argument(format!(
            "{name} {}: has a lone surrogate, so it has no UTF-8; \
             pass bytes, or replace the surrogate",
            quote(text)
        ))
    })
}

/// What to say when Python could not convert a value. Any other exception than those of a bad
/// value comes from the caller's own code, such as a `__float__`, and is passed on.
#[cold]
fn rejected<T>(
    error: PyErr,
    value: &Bound<'_, PyAny>,
    fault: impl FnOnce() -> Fault,
) -> Result<T, Fault> {
    let py = value.py();
    let bad_value = error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyOverflowError>(py)
        || error.is_instance_of::<PyValueError>(py);
    Err(if bad_value { fault() } else { error.into() })
}

/// A value as it is quoted in a message: its `repr`, cut short; its type if it has none.
#[cold]
pub(crate) fn quote(value: &Bound<'_, PyAny>) -> String {
    let Ok(repr) = value.repr() else {
        return format!("of type {}", type_name(value));
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
