//! Reads a configuration tree key by key. Reports unknown keys and values of the wrong type, and
//! remembers the line of each field.

use super::value::{ConfigNode, Entry, Value};
use crate::error::{Error, Result};
use crate::limit::rate::quoted;

/// The spelling of keys in a configuration object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// `charge_refused`, as in TOML and Python.
    Snake,
    /// `chargeRefused`, as in JavaScript.
    Camel,
}

impl Names {
    /// Returns the spelling of a key that is given in snake case.
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

/// The keys that a table may have, as several lists.
pub type Keys = &'static [&'static [&'static str]];

/// A table that has only known keys, as pairs of key and entry.
#[doc(hidden)]
#[derive(Debug)]
pub struct ConfigTable<'a>(pub Vec<(&'static str, &'a Entry)>);

impl<'a> ConfigTable<'a> {
    /// Returns the entry of a key.
    pub fn get(&self, key: &str) -> Option<&'a Entry> {
        self.0.iter().find(|(known, _)| *known == key).map(|(_, entry)| *entry)
    }

    /// Returns the first entry whose key is one of `keys`.
    pub fn first(&self, keys: &[&str]) -> Option<&'a Entry> {
        self.0.iter().find(|(known, _)| keys.contains(known)).map(|(_, entry)| *entry)
    }
}

/// Reads tables key by key.
#[doc(hidden)]
#[derive(Debug)]
pub struct Reader {
    /// The spelling of the keys.
    pub names: Names,
    /// The line of each field that was read, for errors that later checks find.
    pub lines: Vec<(String, Option<u32>)>,
}

impl Reader {
    /// Reads a table that may have only `keys`.
    ///
    /// # Errors
    ///
    /// If `node` is not a table, or has an unknown key or the same key twice.
    pub fn table<'a>(
        &self,
        node: &'a ConfigNode,
        path: &str,
        keys: Keys,
    ) -> Result<ConfigTable<'a>> {
        let Value::Table(entries) = &node.value else {
            let subject = if path.is_empty() { "the configuration " } else { "" };
            let list = self.list(keys);
            let message = format!("{subject}must be a table of {list}, got {}", node.value);
            return Err(Error::config(path, message).at_line(node.line));
        };
        let known = |entry: &'a Entry| {
            let found = keys.iter().copied().flatten().find(|key| self.spell(key) == entry.key);
            found.map(|key| (*key, entry)).ok_or_else(|| self.unknown(entry, path, keys))
        };
        let table = ConfigTable(entries.iter().map(known).collect::<Result<_>>()?);
        let duplicate =
            (1..table.0.len()).find(|i| table.0[..*i].iter().any(|(key, _)| *key == table.0[*i].0));
        match duplicate {
            None => Ok(table),
            Some(i) => {
                Err(Error::config(join(path, &entries[i].key), "is given twice; remove one"))
            }
        }
    }

    /// Returns a value that must be text.
    ///
    /// # Errors
    ///
    /// If it is not text.
    pub fn text<'a>(&self, entry: &'a Entry, path: &str) -> Result<&'a str> {
        match &entry.node.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.wrong(entry, path, "text")),
        }
    }

    /// Returns a value that must be true or false.
    ///
    /// # Errors
    ///
    /// If it is neither.
    pub fn bool(&self, entry: &Entry, path: &str) -> Result<bool> {
        match entry.node.value {
            Value::Bool(value) => Ok(value),
            _ => Err(self.wrong(entry, path, "true or false")),
        }
    }

    /// Returns the error about a value that is not `expected`.
    pub fn wrong(&self, entry: &Entry, path: &str, expected: &str) -> Error {
        let message = format!("must be {expected}, got {}", entry.node.value);
        Error::config(join(path, &entry.key), message).at_line(entry.node.line)
    }

    fn unknown(&self, entry: &Entry, path: &str, keys: Keys) -> Error {
        // Comparing a very long key would take long and find nothing similar.
        let comparable: Keys = if entry.key.len() <= 64 { keys } else { &[] };
        let near = comparable.iter().copied().flatten();
        let near = near.map(|key| (edit_distance(&self.spell(key), &entry.key), key)).min();
        let hint = match near {
            Some((0..=2, key)) => format!("did you mean `{}`?", self.spell(key)),
            _ => format!("the known keys are {}", self.list(keys)),
        };
        Error::config(join(path, &entry.key), format!("is an unknown key; {hint}"))
            .at_line(entry.line)
    }

    fn list(&self, keys: Keys) -> String {
        let keys: Vec<String> = keys.iter().copied().flatten().map(|key| self.spell(key)).collect();
        keys.join(", ")
    }

    fn spell(&self, key: &str) -> String {
        self.names.spell(key)
    }

    /// Returns the line of a field, or of the nearest enclosing field that was written.
    pub(super) fn line_of(&self, field: &str) -> Option<u32> {
        let known = self.lines.iter().find(|(known, _)| known == field);
        match known {
            Some((_, line)) => *line,
            None => self.line_of(field.rsplit_once('.')?.0),
        }
    }
}

/// Joins a path and a key with a dot. Quotes a key that is not a plain word, and shortens a very
/// long one.
pub(super) fn join(path: &str, key: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let key = match key.is_empty() || key.len() > 1000 || !key.chars().all(plain) {
        true => quoted(key),
        false => key.to_string(),
    };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// Returns the Levenshtein distance of two words: the number of characters to change, add or
/// remove.
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
    fn spell_joins_the_words_of_a_key_in_camel_case() {
        assert_eq!(Names::Camel.spell("rate"), "rate");
        assert_eq!(Names::Camel.spell("dry_run"), "dryRun");
        assert_eq!(Names::Camel.spell("a_bc_def_g"), "aBcDefG");
        assert_eq!(Names::Snake.spell("a_bc_def"), "a_bc_def");
    }
}
