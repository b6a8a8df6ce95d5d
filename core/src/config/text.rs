//! TOML text to a tree with lines.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::value::{Entry, Node, Value};
use crate::error::{Error, ErrorKind, Result};

pub(super) fn parse(text: &str) -> Result<Node> {
    let table = DeTable::parse(text).map_err(|fault| {
        let line = fault.span().map(|span| line_of(text, span));
        let message = format!("not TOML: {}", fault.message().trim_end().replace('\n', "; "));
        Error::new(ErrorKind::Config, message).at_line(line)
    })?;
    Ok(Node { value: Lines(text).table(table.get_ref()), line: None })
}

struct Lines<'a>(&'a str);

impl Lines<'_> {
    fn table(&self, table: &DeTable<'_>) -> Value {
        let entries = table.iter().map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            line: Some(line_of(self.0, key.span())),
            node: self.node(value),
        });
        let mut entries: Vec<Entry> = entries.collect();
        // The first mistake in the text is the first that is told.
        entries.sort_by_key(|entry| entry.line);
        Value::Table(entries)
    }

    fn node(&self, spanned: &Spanned<DeValue<'_>>) -> Node {
        let value = match spanned.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Integer(digits) => {
                match i64::from_str_radix(digits.as_str(), digits.radix()) {
                    Ok(number) => Value::Number(number as f64),
                    Err(_) => Value::Other(digits.as_str().to_string()),
                }
            }
            DeValue::Float(digits) => match digits.as_str().parse() {
                Ok(number) => Value::Number(number),
                Err(_) => Value::Other(digits.as_str().to_string()),
            },
            DeValue::Datetime(_) => Value::Other("a date".to_string()),
            DeValue::Array(nodes) => {
                Value::List(nodes.iter().map(|node| self.node(node)).collect())
            }
            DeValue::Table(table) => self.table(table),
        };
        Node { value, line: Some(line_of(self.0, spanned.span())) }
    }
}

fn line_of(text: &str, span: Range<usize>) -> u32 {
    let before = text.as_bytes().iter().take(span.start);
    let newlines = before.filter(|byte| **byte == b'\n').count();
    u32::try_from(newlines + 1).unwrap_or(u32::MAX)
}
