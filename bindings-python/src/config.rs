//! Converts Python objects to a configuration. The core checks it.

use dthrottle::config::{Config, ConfigNode, Entry, Names, TableConfig, Value};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyFloat, PyFrozenSet, PyInt, PyList, PyMapping, PySet, PyString, PyTuple,
};

use crate::args::{quote, timedelta_seconds, type_name};
use crate::errors::CallError;

/// The maximum depth of a configuration. A valid one has at most five levels; a list that contains
/// itself has no end.
const MAX_DEPTH: usize = 16;

/// A configuration from the keyword arguments that are present.
pub(crate) fn from_options(
    options: &[(&str, Option<&Bound<'_, PyAny>>)],
) -> Result<Config, CallError> {
    Ok(Config::from_value(&tree_of(options)?, Names::Snake)?)
}

/// Adds a table that was given beside a configuration.
pub(crate) fn add_table(
    config: &mut Config,
    table: Option<&Bound<'_, PyAny>>,
) -> Result<(), CallError> {
    let Some(table) = table else { return Ok(()) };
    Ok(config.add_table(TableConfig::from_value(tree(table)?, Names::Snake)?)?)
}

/// Keyword arguments as a tree.
pub(crate) fn tree_of(
    options: &[(&str, Option<&Bound<'_, PyAny>>)],
) -> Result<ConfigNode, CallError> {
    let mut entries = Vec::new();
    for (key, value) in options {
        if let Some(value) = value {
            entries.push(Entry::new(*key, tree(value)?));
        }
    }
    Ok(ConfigNode::from(Value::Table(entries)))
}

/// A value as a tree.
pub(crate) fn tree(value: &Bound<'_, PyAny>) -> Result<Value, CallError> {
    subtree(value, MAX_DEPTH)
}

fn subtree(value: &Bound<'_, PyAny>, depth: usize) -> Result<Value, CallError> {
    if depth == 0 {
        return Ok(Value::Other("something nested so deep".into()));
    }
    // In Python a bool is also an int, so it comes first.
    if let Ok(flag) = value.cast::<PyBool>() {
        Ok(Value::Bool(flag.is_true()))
    } else if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        Ok(number(value))
    } else if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_str().map(|text| Value::Text(text.into()));
        Ok(text.unwrap_or_else(|_| Value::Other(format!("{}, a lone surrogate", quote(value)))))
    } else if let Ok(mapping) = value.cast::<PyMapping>() {
        table(mapping, depth)
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let nodes = value.try_iter()?.map(|item| {
            let value = subtree(&item?, depth - 1)?;
            Ok(ConfigNode::from(value))
        });
        Ok(Value::List(nodes.collect::<Result<_, CallError>>()?))
    } else if value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>() {
        // Sorted, because names of domains depend on the order and must be equal in all processes.
        let items = value.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let items = PyList::new(value.py(), items)?;
        let _ = items.sort();
        subtree(&items, depth)
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        Ok(Value::Bytes(bytes.as_bytes().into()))
    } else if value.is_none() {
        Ok(Value::Other("None".into()))
    } else if let Some(seconds) = timedelta_seconds(value)? {
        // Durations of a configuration are text.
        Ok(Value::Text(format!("{seconds}s")))
    } else if value.is_callable() {
        Ok(Value::Function)
    } else {
        Ok(Value::Other(format!("a {}", type_name(value))))
    }
}

fn number(value: &Bound<'_, PyAny>) -> Value {
    match value.extract::<f64>() {
        Ok(number) => Value::Number(number),
        Err(_) => Value::Other("a number beyond all floats".into()),
    }
}

fn table(mapping: &Bound<'_, PyMapping>, depth: usize) -> Result<Value, CallError> {
    let mut entries = Vec::new();
    for item in mapping.items()?.iter() {
        let (key, value) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        let text = key.cast::<PyString>().ok();
        let Some(text) = text.and_then(|text| text.to_str().ok()) else {
            // The error is about the whole table, because in some tables any key is a name.
            let kind = format!("a table with the key {}", quote(&key));
            return Ok(Value::Other(kind));
        };
        entries.push(Entry::new(text, subtree(&value, depth - 1)?));
    }
    Ok(Value::Table(entries))
}
