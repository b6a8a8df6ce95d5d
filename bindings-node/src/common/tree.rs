//! A configuration object, which the API has written as a list of words, as core's tree.
//!
//! A word is a letter and what belongs to it: `n1.5` a number, `btrue` a truth, `s...` text,
//! `x...` bytes in hexadecimal digits, `f` a function, `o...` the name of something that no
//! configuration contains, `l2` a list of two values that
//! follow, `t2` a table of two pairs that follow, each a key as it is and a value. The API has
//! bounded depth and size.

use dthrottle::config::{ConfigNode, Entry, Names, Value};
use dthrottle::{Config, Error, ErrorKind, Result, TableConfig};

/// The configuration that the words say.
pub(crate) fn config(words: Vec<String>) -> Result<Config> {
    Config::from_value(&root(words)?, Names::Camel)
}

/// The configuration with a table that was given beside it, if there is one.
pub(crate) fn with_table(config: Result<Config>, words: Option<Vec<String>>) -> Result<Config> {
    let mut config = config?;
    if let Some(words) = words {
        config.add_table(TableConfig::from_value(root(words)?.value, Names::Camel)?)?;
    }
    Ok(config)
}

/// The tree that the words say.
pub(super) fn root(words: Vec<String>) -> Result<ConfigNode> {
    node(&mut words.into_iter())
}

fn node(words: &mut impl Iterator<Item = String>) -> Result<ConfigNode> {
    let word = words.next().ok_or_else(garbled)?;
    let rest = word.get(1..).ok_or_else(garbled)?;
    let value = match word.as_bytes()[0] {
        b'n' => Value::Number(rest.parse().map_err(|_| garbled())?),
        b'b' => Value::Bool(rest == "true"),
        b's' => Value::Text(rest.to_string()),
        b'x' => Value::Bytes(hex(rest)?),
        b'f' => Value::Function,
        b'o' => Value::Other(rest.to_string()),
        b'l' => Value::List((0..count(rest)?).map(|_| node(words)).collect::<Result<_>>()?),
        b't' => Value::Table((0..count(rest)?).map(|_| entry(words)).collect::<Result<_>>()?),
        _ => return Err(garbled()),
    };
    Ok(value.into())
}

fn entry(words: &mut impl Iterator<Item = String>) -> Result<Entry> {
    let key = words.next().ok_or_else(garbled)?;
    Ok(Entry { key, line: None, node: node(words)? })
}

/// Bytes from their hexadecimal digits.
fn hex(digits: &str) -> Result<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| {
        let pair = std::str::from_utf8(pair).map_err(|_| garbled())?;
        u8::from_str_radix(pair, 16).map_err(|_| garbled())
    });
    bytes.collect()
}

fn count(digits: &str) -> Result<usize> {
    digits.parse().map_err(|_| garbled())
}

fn garbled() -> Error {
    Error::new(ErrorKind::Internal, "the API wrote a configuration that cannot be read")
}
