//! A tree read key by key: unknown keys, values of the wrong kind, and where each field stood.

use super::value::{ConfigNode, Entry, Value};
use crate::error::{Error, Result};
use crate::limit::rate::quoted;

/// How the keys of an object are spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// `charge_refused`, as in TOML and Python.
    Snake,
    /// `chargeRefused`, as in JavaScript.
    Camel,
}

impl Names {
    /// A key as its language spells it.
    pub fn spell(self, key: &str) -> String {
        match self {
            Names::Snake => key.to_string(),
            Names::Camel => {
                let mut spelled = String::with_capacity(key.len());
                for (i, word) in key.split('_').enumerate() {
                    let (first, rest) = word.split_at(word.len().min(usize::from(i > 0)));
                    spelled += &first.to_ascii_uppercase();
                    spelled += rest;
                }
                spelled
            }
        }
    }
}

/// Lists of keys that a table may have together.
pub type Keys = &'static [&'static [&'static str]];

/// A table whose keys are known.
#[doc(hidden)]
#[derive(Debug)]
pub struct ConfigTable<'a>(pub Vec<(&'static str, &'a Entry)>);

impl<'a> ConfigTable<'a> {
    /// The entry of a key.
    pub fn get(&self, key: &str) -> Option<&'a Entry> {
        self.0.iter().find(|(known, _)| *known == key).map(|(_, entry)| *entry)
    }

    /// The first entry of these keys.
    pub fn first(&self, keys: &[&str]) -> Option<&'a Entry> {
        self.0.iter().find(|(known, _)| keys.contains(known)).map(|(_, entry)| *entry)
    }
}

/// Reads tables key by key.
#[doc(hidden)]
#[derive(Debug)]
pub struct Reader {
    /// How their keys are spelled.
    pub names: Names,
    /// Where each field stands, for the check of the values.
    pub lines: Vec<(String, Option<u32>)>,
}

impl Reader {
    /// A table of no other keys than these.
    pub fn table<'a>(
        &self,
        node: &'a ConfigNode,
        path: &str,
        keys: Keys,
    ) -> Result<ConfigTable<'a>> {
        let Value::Table(entries) = &node.value else {
            let message = format!("{} is not a table of {}", node.value, self.list(keys));
            return Err(Error::config(path, message).at_line(node.line));
        };
        let known = |entry: &'a Entry| {
            let found = keys.iter().copied().flatten().find(|key| self.spell(key) == entry.key);
            found.map(|key| (*key, entry)).ok_or_else(|| self.unknown(entry, path, keys))
        };
        let table = ConfigTable(entries.iter().map(known).collect::<Result<_>>()?);
        let twice =
            (1..table.0.len()).find(|i| table.0[..*i].iter().any(|(key, _)| *key == table.0[*i].0));
        match twice {
            None => Ok(table),
            Some(i) => Err(Error::config(join(path, &entries[i].key), "given twice")),
        }
    }

    /// A value that must be text.
    pub fn text<'a>(&self, entry: &'a Entry, path: &str) -> Result<&'a str> {
        match &entry.node.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.kind(entry, path, "text")),
        }
    }

    /// A value that must be true or false.
    pub fn bool(&self, entry: &Entry, path: &str) -> Result<bool> {
        match entry.node.value {
            Value::Bool(value) => Ok(value),
            _ => Err(self.kind(entry, path, "true or false")),
        }
    }

    /// The error about a value of the wrong kind.
    pub fn kind(&self, entry: &Entry, path: &str, fix: &str) -> Error {
        let message = format!("{} is not possible here; write {fix}", entry.node.value);
        Error::config(join(path, &entry.key), message).at_line(entry.node.line)
    }

    fn unknown(&self, entry: &Entry, path: &str, keys: Keys) -> Error {
        // A key of great length is near to none, and comparing would take long.
        let comparable: Keys = if entry.key.len() <= 64 { keys } else { &[] };
        let near = comparable.iter().copied().flatten();
        let near = near.map(|key| (edit_distance(&self.spell(key), &entry.key), key)).min();
        let hint = match near {
            Some((0..=2, key)) => format!("did you mean {}?", self.spell(key)),
            _ => format!("the keys here are {}", self.list(keys)),
        };
        Error::config(join(path, &entry.key), format!("unknown key; {hint}")).at_line(entry.line)
    }

    fn list(&self, keys: Keys) -> String {
        let keys: Vec<String> = keys.iter().copied().flatten().map(|key| self.spell(key)).collect();
        keys.join(", ")
    }

    fn spell(&self, key: &str) -> String {
        self.names.spell(key)
    }

    /// The line of a field, or of what it belongs to if it was not written.
    pub(super) fn line_of(&self, field: &str) -> Option<u32> {
        let known = self.lines.iter().find(|(known, _)| known == field);
        match known {
            Some((_, line)) => *line,
            None => self.line_of(field.rsplit_once('.')?.0),
        }
    }
}

/// The path of a key below a path; a key that is not a plain word is quoted, one of great length
/// cut short.
pub(super) fn join(path: &str, key: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let key = match key.is_empty() || key.len() > 1000 || !key.chars().all(plain) {
        true => quoted(key),
        false => key.to_string(),
    };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// How many letters must be changed, added or dropped to turn one word into the other.
pub(crate) fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.chars().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_key_is_joined_in_camel_case() {
        assert_eq!(Names::Camel.spell("rate"), "rate");
        assert_eq!(Names::Camel.spell("dry_run"), "dryRun");
        assert_eq!(Names::Camel.spell("a_bc_def_g"), "aBcDefG");
        assert_eq!(Names::Snake.spell("a_bc_def"), "a_bc_def");
    }
}
