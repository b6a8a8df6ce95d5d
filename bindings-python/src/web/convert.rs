//! Values of Python as what the core's HTTP policy takes, and header fields for Python.

use std::borrow::Cow;

use dthrottle::config::Names;
use dthrottle::web::{self, Body, Options};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString};

use crate::config::{tree, tree_of};
use crate::errors::Fault;

pub(super) type Pairs<'py> = Vec<(Bound<'py, PyString>, Bound<'py, PyString>)>;

/// Some options of middleware, read on their own.
pub(super) fn read(options: &[(&str, Option<&Bound<'_, PyAny>>)]) -> Result<Options, Fault> {
    Ok(Options::read(&tree_of(options)?, Names::Snake)?)
}

/// Text; a lone surrogate in it is replaced.
pub(super) fn text<'a>(value: &'a Bound<'_, PyAny>) -> Option<Cow<'a, str>> {
    Some(value.cast::<PyString>().ok()?.to_string_lossy())
}

/// The lines of a header: one text, several, or none.
pub(super) fn lines<'a>(value: Option<&'a Bound<'_, PyAny>>) -> Result<Vec<Cow<'a, str>>, Fault> {
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
    // Subclasses may have another `__str__`. Very large ints have no digits.
    let digits = value.py().get_type::<PyInt>().call_method1("__repr__", (value,)).ok()?;
    Some(digits.cast::<PyString>().ok()?.to_str().ok()?.into())
}

/// A body that a function gave.
pub(super) fn body_of(value: &Bound<'_, PyAny>) -> Result<Body, Fault> {
    let value = tree(value)?;
    match Body::from_value(&value) {
        Ok(Body::Function) => Err(Fault::argument("body: a function gave a function")),
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
