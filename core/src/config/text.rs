//! Reads TOML into a tree that has line numbers, and the tree into configurations.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::value::{ConfigNode, Entry, Value};
use super::{Config, Names, read};
use crate::builder::Builder;
use crate::error::{Error, ErrorKind, Result};
use crate::os::file;
use crate::throttle::Throttle;

impl Throttle {
    /// Opens a throttle from a configuration in TOML. docs/configuration.md describes the keys.
    ///
    /// ```
    /// let throttle = dthrottle::Throttle::from_toml("rate = '100/s'\nburst = 200")?;
    /// assert!(throttle.allow("203.0.113.7")?);
    /// # Ok::<(), dthrottle::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the text is not valid TOML, a value is wrong, or the table cannot be opened.
    pub fn from_toml(text: &str) -> Result<Throttle> {
        Builder::from(Config::from_toml(text)?).build()
    }

    /// Opens a throttle from a configuration file in TOML.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, and like [`Throttle::from_toml`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Throttle> {
        Builder::from(Config::from_file(path)?).build()
    }
}

impl Config {
    /// Reads a configuration in TOML.
    ///
    /// # Errors
    ///
    /// If the text is not valid TOML or a value is wrong. The error has the line and the field.
    pub fn from_toml(text: &str) -> Result<Config> {
        Ok(Config::with_daemon(text)?.0)
    }

    /// Reads a configuration in TOML and returns its table `[daemon]` unread, so that libraries and
    /// dthrottled can use the same file.
    ///
    /// # Errors
    ///
    /// Like [`Config::from_toml`].
    pub fn with_daemon(text: &str) -> Result<(Config, Option<Entry>)> {
        let mut root = parse(text)?;
        let daemon = match &mut root.value {
            Value::Table(entries) => entries.extract_if(.., |entry| entry.key == "daemon").next(),
            _ => None,
        };
        Ok((read::config(&root, Names::Snake)?, daemon))
    }

    /// Reads a configuration file in TOML.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, and like [`Config::from_toml`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Config> {
        Config::from_toml(&file::read(path.as_ref())?)
    }
}

#[cfg(feature = "busy")]
impl super::BusyConfig {
    /// Reads the settings of a busy throttle in TOML. docs/busy.md describes the keys.
    ///
    /// # Errors
    ///
    /// If the text is not valid TOML or a value is wrong.
    pub fn from_toml(text: &str) -> Result<super::BusyConfig> {
        super::BusyConfig::from_value(&parse(text)?, Names::Snake)
    }
}

pub(crate) fn parse(text: &str) -> Result<ConfigNode> {
    let lines = LineIndex::of(text);
    let table = DeTable::parse(text).map_err(|fault| {
        let line = fault.span().map(|span| lines.line(&span));
        let message = format!("invalid TOML: {}", fault.message().trim_end().replace('\n', "; "));
        Error::new(ErrorKind::Config, message).at_line(line)
    })?;
    Ok(ConfigNode { value: lines.table(table.get_ref()), line: None })
}

/// The byte offsets at which the lines of a text end.
struct LineIndex(Vec<usize>);

impl LineIndex {
    fn of(text: &str) -> LineIndex {
        LineIndex(
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(i, _)| i).collect(),
        )
    }

    /// Returns the line on which a span begins, from 1.
    fn line(&self, span: &Range<usize>) -> u32 {
        let before = self.0.partition_point(|end| *end < span.start);
        u32::try_from(before + 1).unwrap_or(u32::MAX)
    }

    fn table(&self, table: &DeTable<'_>) -> Value {
        let entries = table.iter().map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            line: Some(self.line(&key.span())),
            node: self.node(value),
        });
        let mut entries: Vec<Entry> = entries.collect();
        // In the order of the text, so that the first mistake is the one that is reported.
        entries.sort_by_key(|entry| entry.line);
        Value::Table(entries)
    }

    fn node(&self, spanned: &Spanned<DeValue<'_>>) -> ConfigNode {
        let number = |digits: &str, number: Option<f64>| match number {
            Some(number) => Value::Number(number),
            None => Value::Other(digits.to_string()),
        };
        let value = match spanned.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Integer(digits) => {
                let integer = i64::from_str_radix(digits.as_str(), digits.radix());
                number(digits.as_str(), integer.ok().map(|integer| integer as f64))
            }
            DeValue::Float(digits) => number(digits.as_str(), digits.as_str().parse().ok()),
            DeValue::Datetime(_) => Value::Other("a date".to_string()),
            DeValue::Array(nodes) => {
                Value::List(nodes.iter().map(|node| self.node(node)).collect())
            }
            DeValue::Table(table) => self.table(table),
        };
        ConfigNode { value, line: Some(self.line(&spanned.span())) }
    }
}
