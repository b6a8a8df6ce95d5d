//! Generates code and documents from core's lists of records, error kinds and configuration keys,
//! where a macro cannot do it. Writes whole files, and the parts of files between `xtask: NAME` and
//! `xtask: end`.

mod c;
mod documents;
mod javascript;
mod python;

use std::error::Error;
use std::fs;

use dthrottle::busy::BusyStats;
use dthrottle::records::{Field, summary as short};
use dthrottle::{ClusterEvent, ClusterStats, Decision, ErrorKind, PeerStats, Stats};

use crate::root;

pub(crate) use c::initialisers;

/// A record, as the generators use it.
#[derive(Clone, Copy)]
struct Record {
    name: &'static str,
    about: &'static [&'static str],
    fields: &'static [Field],
    /// The number of fields in the first version of the C struct.
    first: usize,
}

macro_rules! all {
    ($($record:ident),*) => {
        [$(Record {
            name: stringify!($record),
            about: $record::ABOUT,
            fields: $record::FIELDS,
            first: $record::FIRST_VERSION_FIELDS,
        }),*]
    };
}

const RECORDS: [Record; 6] =
    all![Decision, Stats, BusyStats, ClusterStats, PeerStats, ClusterEvent];
const DECISION: Record = RECORDS[0];

/// An entry of the list of error kinds.
struct KindOfError {
    kind: ErrorKind,
    docs: Vec<&'static str>,
    class: &'static str,
    base: &'static str,
}

macro_rules! define_error_kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $number:literal, $name:literal, $code:ident,
        $class:ident($base:ident), $text:literal;)*) => {
        fn error_kinds() -> Vec<KindOfError> {
            vec![$(KindOfError {
                kind: ErrorKind::$kind,
                docs: vec![$($doc),+],
                class: stringify!($class),
                base: stringify!($base),
            }),*]
        }
    };
}

dthrottle::error_kinds!(define_error_kinds);

/// Writes all generated files.
pub(crate) fn write() -> Result<(), Box<dyn Error>> {
    for (path, text) in files()? {
        fs::write(root().join(path), text)?;
    }
    Ok(())
}

/// Returns an error if a committed file is out of date.
pub(crate) fn check() -> Result<(), Box<dyn Error>> {
    for (path, text) in files()? {
        // A missing file is out of date, too.
        if fs::read_to_string(root().join(path)).ok() != Some(text) {
            let message = "is out of date; run `cargo run -p xtask -- records` and commit it";
            return Err(format!("{path} {message}").into());
        }
    }
    Ok(())
}

fn files() -> Result<Vec<(&'static str, String)>, Box<dyn Error>> {
    Ok(vec![
        ("bindings-c/src/records.rs", c::structs()),
        ("bindings-node/api/records.js", javascript::readers()),
        filled("bindings-node/README.md", &javascript::table())?,
        filled("bindings-node/index.d.ts", &javascript::types())?,
        filled("bindings-python/python/dthrottle/_dthrottle.pyi", &python::stub())?,
        filled("bindings-python/python/dthrottle/client.py", &python::client())?,
        filled("bindings-python/python/dthrottle/config.py", &python::shapes())?,
        filled("bindings-python/python/dthrottle/errors.py", &python::errors())?,
        filled("docs/semantics.md", &documents::semantics())?,
        ("tests/vectors/records.json", documents::names()),
    ])
}

/// Returns the text of a file with its marked parts generated again.
fn filled(
    path: &'static str,
    parts: &[(&str, String)],
) -> Result<(&'static str, String), Box<dyn Error>> {
    let mut text = fs::read_to_string(root().join(path))?;
    for (name, part) in parts {
        text = fill(&text, name, part).ok_or_else(|| format!("{path}: no `xtask: {name}`"))?;
    }
    Ok((path, text))
}

fn fill(text: &str, name: &str, part: &str) -> Option<String> {
    let mut lines = text.split_inclusive('\n');
    let marker = format!("xtask: {name}");
    let is = |line: &str, marker: &str| {
        line.trim_end().trim_end_matches("-->").trim_end().ends_with(marker)
    };
    let mut out = String::new();
    for line in lines.by_ref() {
        out += line;
        if is(line, &marker) {
            out += part;
            let end = lines.find(|line| is(line, "xtask: end"))?;
            return Some(out + end + lines.collect::<String>().as_str());
        }
    }
    None
}

/// Returns a whole doc comment as one line.
fn whole(docs: &[&str]) -> String {
    let lines = docs.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// Wraps a text into lines of at most `width` characters, each with a prefix.
fn wrapped(text: &str, width: usize, prefix: &str) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && prefix.len() + line.len() + 1 + word.len() > width {
            out += &format!("{prefix}{line}\n");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    out + prefix + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_between_the_markers_changes() {
        let text = "a\n# xtask: x\nold\n<!-- xtask: end -->\nb\n<!-- xtask: y -->\n";
        let new = "a\n# xtask: x\nnew\n<!-- xtask: end -->\nb\n<!-- xtask: y -->\n";
        assert_eq!(fill(text, "x", "new\n").as_deref(), Some(new));
        assert_eq!(fill(text, "y", "new\n"), None, "a part without an end marker is an error");
        assert_eq!(fill(text, "z", "new\n"), None);
    }

    #[test]
    fn text_is_wrapped_at_spaces() {
        assert_eq!(wrapped("one two three", 10, "# "), "# one two\n# three\n");
    }
}
