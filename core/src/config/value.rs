//! A configuration as a plain tree, whatever it was written in.

use std::fmt;

use crate::convert::shown;

/// A value and the line on which it stands, if it was text.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigNode {
    /// The value.
    pub value: Value,
    /// From 1.
    pub line: Option<u32>,
}

/// A key of a table and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key as it was written.
    pub key: String,
    /// The line of the key, from 1.
    pub line: Option<u32>,
    /// The value.
    pub node: ConfigNode,
}

/// What a configuration can be made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<ConfigNode>),
    /// A table of keys and values.
    Table(Vec<Entry>),
    /// Bytes, such as a tag in an option of middleware. No configuration contains them.
    Bytes(Vec<u8>),
    /// A function of the application, in an option of middleware. No configuration contains one.
    Function,
    /// Something that no configuration contains, by the name of its kind: `null`, `a date`.
    Other(String),
}

impl From<Value> for ConfigNode {
    fn from(value: Value) -> ConfigNode {
        ConfigNode { value, line: None }
    }
}

impl Entry {
    /// An entry of an object.
    pub fn new(key: impl Into<String>, value: Value) -> Entry {
        Entry { key: key.into(), line: None, node: value.into() }
    }
}

/// The value as it is quoted in a message.
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
