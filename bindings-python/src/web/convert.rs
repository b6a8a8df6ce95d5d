//! Converts values of Python for the HTTP policy of the core, and header fields to Python.

use std::borrow::Cow;

use dthrottle::config::Names;
use dthrottle::web::{self, Body, Options};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString};

use crate::config::{tree, tree_of};
use crate::errors::CallError;

pub(super) type Pairs<'py> = Vec<(Bound<'py, PyString>, Bound<'py, PyString>)>;

/// Reads some options of middleware without a throttle.
pub(super) fn read(options: &[(&str, Option<&Bound<'_, PyAny>>)]) -> Result<Options, CallError> {
    Ok(Options::read(&tree_of(options)?, Names::Snake)?)
}

/// Text, with lone surrogates replaced; `None` for other values.
pub(super) fn text<'a>(value: &'a Bound<'_, PyAny>) -> Option<Cow<'a, str>> {
    Some(value.cast::<PyString>().ok()?.to_string_lossy())
}

/// The lines of a header, which Python has as one string, several, or `None`.
pub(super) fn lines<'a>(
    value: Option<&'a Bound<'_, PyAny>>,
) -> Result<Vec<Cow<'a, str>>, CallError> {
    let Some(value) = value else { return Ok(Vec::new()) };
    if let Some(text) = text(value) {
        return Ok(if text.is_empty() { Vec::new() } else { vec![text] });
    }
    let mut lines = Vec::new();
    for line in value.try_iter()? {
        lines.extend(text(&line?).map(|line| Cow::Owned(line.into_owned())));
    }
    Ok(lines)
}

/// A value as a tag: text as UTF-8, bytes, or the digits of an int. `tests/vectors/tags.json` lists
/// the values.
pub(super) fn tag_bytes(value: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    if let Ok(text) = value.cast::<PyString>() {
        return Some(text.to_str().ok()?.into());
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Some(bytes.as_bytes().into());
    }
    if value.is_instance_of::<PyBool>() || !value.is_instance_of::<PyInt>() {
        return None;
    }
    // A subclass may have another `__str__`. `repr` fails for ints with more than 4,300 digits.
    let digits = value.py().get_type::<PyInt>().call_method1("__repr__", (value,)).ok()?;
    Some(digits.cast::<PyString>().ok()?.to_str().ok()?.into())
}

/// The body that a function of the application returned.
pub(super) fn body_of(value: &Bound<'_, PyAny>) -> Result<Body, CallError> {
    let value = tree(value)?;
    match Body::from_value(&value) {
        Ok(Body::Function) => {
            Err(CallError::argument("`body` must return text, bytes or a dict, got a function"))
        }
        Ok(body) => Ok(body),
        Err(right) => {
            Err(dthrottle::Error::config("body", format!("must be {right}, got {value}")).into())
        }
    }
}

/// Header fields as pairs of name and value.
pub(super) fn pairs<'py>(py: Python<'py>, fields: &[web::Field<'_>]) -> Pairs<'py> {
    let pair = |(name, value): &web::Field<'_>| {
        (PyString::intern(py, name), PyString::new(py, value.as_ref()))
    };
    fields.iter().map(pair).collect()
}
