//! What is written from core's lists of records, error kinds and configuration keys, where no macro
//! reaches: whole files, and parts of files between lines that say `xtask: NAME` and `xtask: end`.

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

/// A record as the writers need it.
#[derive(Clone, Copy)]
struct Record {
    name: &'static str,
    about: &'static [&'static str],
    fields: &'static [Field],
    /// How many fields the first version of the C struct had.
    first: usize,
}

macro_rules! all {
    ($($record:ident),*) => {
        [$(Record {
            name: stringify!($record),
            about: $record::ABOUT,
            fields: $record::FIELDS,
            first: $record::FIRST,
        }),*]
    };
}

const RECORDS: [Record; 6] =
    all![Decision, Stats, BusyStats, ClusterStats, PeerStats, ClusterEvent];
const DECISION: Record = RECORDS[0];

/// What the list of errors says of a kind, besides what core has of it.
struct Failure {
    kind: ErrorKind,
    docs: Vec<&'static str>,
    class: &'static str,
    base: &'static str,
}

macro_rules! failures {
    ($($(#[doc = $doc:literal])+ $kind:ident = $number:literal, $name:literal, $code:ident,
        $class:ident($base:ident), $text:literal;)*) => {
        fn failures() -> Vec<Failure> {
            vec![$(Failure {
                kind: ErrorKind::$kind,
                docs: vec![$($doc),+],
                class: stringify!($class),
                base: stringify!($base),
            }),*]
        }
    };
}

dthrottle::error_kinds!(failures);

/// Writes all of it anew.
pub(crate) fn write() -> Result<(), Box<dyn Error>> {
    for (path, text) in files()? {
        fs::write(root().join(path), text)?;
    }
    Ok(())
}

/// Fails when a committed file is not what the lists give.
pub(crate) fn check() -> Result<(), Box<dyn Error>> {
    for (path, text) in files()? {
        // A file that is not there is out of date, too.
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

/// A file with its marked parts written anew.
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

/// The whole description, as one line.
fn whole(docs: &[&str]) -> String {
    let lines = docs.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// A text in lines of at most so many characters, each with this before it.
fn wrapped(text: &str, width: usize, before: &str) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && before.len() + line.len() + 1 + word.len() > width {
            out += &format!("{before}{line}\n");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    out + before + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let text = "a\n# xtask: x\nold\n<!-- xtask: end -->\nb\n<!-- xtask: y -->\n";
        let new = "a\n# xtask: x\nnew\n<!-- xtask: end -->\nb\n<!-- xtask: y -->\n";
        assert_eq!(fill(text, "x", "new\n").as_deref(), Some(new));
        assert_eq!(fill(text, "y", "new\n"), None, "it has no end");
        assert_eq!(fill(text, "z", "new\n"), None);
    }

    #[test]
    fn text_is_wrapped_at_blanks() {
        assert_eq!(wrapped("one two three", 10, "# "), "# one two\n# three\n");
    }
}
