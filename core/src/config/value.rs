//! A configuration as a tree of values, independent of the format it was read from.

use std::fmt;

use crate::convert::shown;

/// A value, and its line if it was read from text.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigNode {
    /// The value.
    pub value: Value,
    /// The line of the value, from 1. `None` for objects.
    pub line: Option<u32>,
}

/// A key of a table and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key as the user wrote it.
    pub key: String,
    /// The line of the key, from 1.
    pub line: Option<u32>,
    /// The value.
    pub node: ConfigNode,
}

/// A value in a configuration tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
    /// A list of values.
    List(Vec<ConfigNode>),
    /// A table of keys and values.
    Table(Vec<Entry>),
    /// Bytes, such as a tag in an option of middleware. No configuration contains them.
    Bytes(Vec<u8>),
    /// A function of the application, in an option of middleware. No configuration contains one.
    Function,
    /// A value of any other type, which is always an error. Holds the name of the type: `null`,
    /// `a date`.
    Other(String),
}

impl From<Value> for ConfigNode {
    fn from(value: Value) -> ConfigNode {
        ConfigNode { value, line: None }
    }
}

impl Entry {
    /// Creates an entry that has no line.
    pub fn new(key: impl Into<String>, value: Value) -> Entry {
        Entry { key: key.into(), line: None, node: value.into() }
    }
}

/// Formats the value for an error message. Lists and tables are only named.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(number) => f.write_str(&shown(*number)),
            Value::Text(text) => write!(f, "{text:?}"),
            Value::List(_) => f.write_str("a list"),
            Value::Table(_) => f.write_str("a table"),
            Value::Bytes(_) => f.write_str("bytes"),
            Value::Function => f.write_str("a function"),
            Value::Other(kind) => f.write_str(kind),
        }
    }
}
