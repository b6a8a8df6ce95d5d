//! Decodes a configuration object, which `api/encode_config.js` encodes as a list of strings, to
//! core's tree.
//!
//! The first letter of a string is its type: `n1.5` is a number, `btrue` a boolean, `s...` text,
//! `x...` bytes in hexadecimal digits, `f` a function, `o...` the description of a value that no
//! configuration contains, `l2` a list of two values, which follow, `t2` a table of two entries,
//! which follow: a key without a letter, and a value. The API has limited depth and size.

use dthrottle::config::{ConfigNode, Entry, Names, Value};
use dthrottle::{Config, Error, ErrorKind, Result, TableConfig};

/// Decodes a configuration.
pub(crate) fn config(encoded: Vec<String>) -> Result<Config> {
    Config::from_value(&decode(encoded)?, Names::Camel)
}

/// Adds an encoded table to a configuration, if it is given.
pub(crate) fn with_table(config: Result<Config>, encoded: Option<Vec<String>>) -> Result<Config> {
    let mut config = config?;
    if let Some(encoded) = encoded {
        config.add_table(TableConfig::from_value(decode(encoded)?.value, Names::Camel)?)?;
    }
    Ok(config)
}

/// Decodes a configuration tree.
pub(super) fn decode(encoded: Vec<String>) -> Result<ConfigNode> {
    node(&mut encoded.into_iter())
}

fn node(encoded: &mut impl Iterator<Item = String>) -> Result<ConfigNode> {
    let word = encoded.next().ok_or_else(unreadable)?;
    let rest = word.get(1..).ok_or_else(unreadable)?;
    let value = match word.as_bytes()[0] {
        b'n' => Value::Number(rest.parse().map_err(|_| unreadable())?),
        b'b' => Value::Bool(rest == "true"),
        b's' => Value::Text(rest.to_string()),
        b'x' => Value::Bytes(hex(rest)?),
        b'f' => Value::Function,
        b'o' => Value::Other(rest.to_string()),
        b'l' => Value::List((0..count(rest)?).map(|_| node(encoded)).collect::<Result<_>>()?),
        b't' => Value::Table((0..count(rest)?).map(|_| entry(encoded)).collect::<Result<_>>()?),
        _ => return Err(unreadable()),
    };
    Ok(value.into())
}

fn entry(encoded: &mut impl Iterator<Item = String>) -> Result<Entry> {
    let key = encoded.next().ok_or_else(unreadable)?;
    Ok(Entry { key, line: None, node: node(encoded)? })
}

/// Decodes hexadecimal digits.
fn hex(digits: &str) -> Result<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| {
        let pair = std::str::from_utf8(pair).map_err(|_| unreadable())?;
        u8::from_str_radix(pair, 16).map_err(|_| unreadable())
    });
    bytes.collect()
}

fn count(digits: &str) -> Result<usize> {
    digits.parse().map_err(|_| unreadable())
}

fn unreadable() -> Error {
    Error::new(ErrorKind::Internal, "the API wrote a configuration that cannot be read")
}
