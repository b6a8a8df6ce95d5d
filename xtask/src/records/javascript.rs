//! How JavaScript reads the numbers of a record, and the types of records, options and errors.

use std::fmt::Write;

use dthrottle::config::Names;
use dthrottle::records::keys::{self, Key};
use dthrottle::records::{Field, FieldKind};

use super::{DECISION, RECORDS, Record, failures, short, wrapped};

/// A field's name: `retryAfterMs`.
pub(super) fn name(field: &Field) -> String {
    let unit = if matches!(field.kind, FieldKind::Time | FieldKind::Millis) { "Ms" } else { "" };
    Names::Camel.spell(field.name) + unit
}

/// bindings-node/api/records.js.
pub(super) fn readers() -> String {
    let mut out = String::from(
        "// How the numbers that a native part gives become the fields of records. Written by\n\
         // `cargo run -p xtask -- records` from the lists in core/src/records/.\n\
         'use strict';\n\n\
         /** @import { BusyStats, Decision, Stats } from '../index.js' */\n\n",
    );
    let _ = writeln!(
        out,
        "/** How many numbers a decision is. */\nconst NUMBERS = {};\n",
        DECISION.fields.len()
    );
    out += "/** Where the fields of a decision are among its numbers. */\nconst AT = Object.freeze({\n";
    for (at, field) in DECISION.fields.iter().enumerate() {
        let _ = writeln!(out, "  {}: {at},", name(field));
    }
    out += "});\n\n/**\n * @param {ArrayLike<number>} from\n * @param {(index: number) => string} nameOf The name of a rule.\n * @returns {Decision}\n */\nfunction toDecision(from, nameOf) {\n  return {\n";
    for (at, field) in DECISION.fields.iter().enumerate() {
        let value = match field.kind {
            FieldKind::Flag => format!("from[{at}] !== 0"),
            FieldKind::Rule => format!("from[{at}] < 0 ? null : nameOf(from[{at}])"),
            _ => format!("from[{at}]"),
        };
        let _ = writeln!(out, "    {}: {value},", name(field));
    }
    out += "  };\n}\n\n/**\n * A decision from the fields of a daemon's answer.\n * @param {boolean} allowed\n * @param {(key: string, usual: number) => number} number The number of a field.\n * @param {{ [key: string]: string | null }} names The names of rules.\n * @returns {Decision}\n */\nfunction toAnswer(allowed, number, names) {\n  return {\n    allowed,\n";
    for field in &DECISION.fields[1..] {
        let key = field.name;
        let value = match field.kind {
            FieldKind::Flag => format!("number('{key}', 0) !== 0"),
            FieldKind::Units | FieldKind::Balance => format!("number('{key}', Infinity)"),
            FieldKind::Time | FieldKind::Millis => format!("number('{key}_ns', 0) / 1e6"),
            FieldKind::Rule => format!("names.{key}"),
            _ => format!("number('{key}', 0)"),
        };
        let _ = writeln!(out, "    {}: {value},", name(field));
    }
    out += "  };\n}\n";
    let counts = |name: &str| RECORDS.into_iter().find(|record| record.name == name);
    for record in ["Stats", "BusyStats"].into_iter().filter_map(counts) {
        let _ = write!(
            out,
            "\n/**\n * @param {{ArrayLike<number>}} from\n * @returns {{{}}}\n */\nfunction to{}(from) {{\n  return {{\n",
            record.name, record.name
        );
        for (at, field) in record.fields.iter().enumerate() {
            let _ = writeln!(out, "    {}: from[{at}],", name(field));
        }
        out += "  };\n}\n";
    }
    out + "\nmodule.exports = { AT, NUMBERS, toAnswer, toBusyStats, toDecision, toStats };\n"
}

/// The marked parts of index.d.ts.
pub(super) fn types() -> Vec<(&'static str, String)> {
    let records = RECORDS.iter().map(interface).collect::<Vec<_>>().join("\n");
    let codes: Vec<String> =
        failures().iter().map(|failure| format!("  | '{}'", failure.kind.code())).collect();
    vec![
        ("records", records),
        ("error codes", format!("export type ErrorCode =\n{};\n", codes.join("\n"))),
        ("rule", members(keys::SHORT)),
        ("rule in a list", members(keys::RULE)),
        ("domain", members(keys::DOMAIN)),
        ("throttle", members(keys::TOP)),
        ("table", members(keys::TABLE)),
        ("cluster", members(keys::CLUSTER)),
        ("busy", members(keys::BUSY)),
    ]
}

/// The marked part of README.md.
pub(super) fn table() -> Vec<(&'static str, String)> {
    let rows = DECISION.fields.iter().map(|field| {
        let docs = spelled(&short(field.docs));
        format!("| `{}` | {docs}{} |\n", name(field), note(field))
    });
    vec![("decision", format!("| field | meaning |\n|---|---|\n{}", rows.collect::<String>()))]
}

/// What is different in JavaScript.
fn note(field: &Field) -> &'static str {
    match field.kind {
        FieldKind::Units | FieldKind::Balance => " Infinity in a domain without rules.",
        FieldKind::Rule => " Its name; null if there is none.",
        FieldKind::Id => " 16 hexadecimal digits.",
        _ => "",
    }
}

/// A description as a comment, on one line if it fits.
fn comment(text: &str, indent: &str) -> String {
    match indent.len() + text.len() + 7 <= 110 {
        true => format!("{indent}/** {text} */\n"),
        false => {
            let lines = wrapped(text, 100, &format!("{indent} * "));
            format!("{indent}/**\n{lines}{indent} */\n")
        }
    }
}

fn interface(record: &Record) -> String {
    let mut out = comment(&short(record.about), "");
    let _ = writeln!(out, "export interface {} {{", record.name);
    for field in record.fields {
        let kind = match field.kind {
            FieldKind::Flag => "boolean",
            FieldKind::Count
            | FieldKind::Units
            | FieldKind::Balance
            | FieldKind::Time
            | FieldKind::Millis => "number",
            FieldKind::Rule | FieldKind::Address => "string | null",
            FieldKind::Id | FieldKind::Word => "string",
            FieldKind::State => "'up' | 'down' | 'left' | 'known'",
            FieldKind::Peers => "PeerStats[]",
            FieldKind::Counts => "Record<string, number>",
        };
        out += &comment(&(spelled(&short(field.docs)) + note(field)), "  ");
        let _ = writeln!(out, "  readonly {}: {kind};", name(field));
    }
    out + "}\n"
}

/// The words in backticks as JavaScript spells them.
fn spelled(docs: &str) -> String {
    let parts = docs.split('`').enumerate();
    let parts = parts.map(|(i, part)| match i % 2 {
        1 if part.starts_with('"') => part.replace('"', "'"),
        1 if DECISION.fields.iter().any(|field| field.name == part) => Names::Camel.spell(part),
        _ => part.to_string(),
    });
    parts.collect::<Vec<_>>().join("`")
}

fn members(list: &[Key]) -> String {
    let mut out = String::new();
    for key in list {
        let kind = match key.kind {
            keys::KeyKind::Bool => "boolean",
            keys::KeyKind::Burst | keys::KeyKind::Group | keys::KeyKind::Rate => "string | number",
            keys::KeyKind::Cluster => "ClusterOptions",
            keys::KeyKind::Domains => "Readonly<Record<string, DomainOptions>>",
            keys::KeyKind::Mode => "'live' | 'document'",
            keys::KeyKind::Number | keys::KeyKind::Whole => "number",
            keys::KeyKind::Reports => "'eager' | 'periodic'",
            keys::KeyKind::Rules => "readonly NamedRuleOptions[]",
            keys::KeyKind::Secret => "string | { file: string }",
            keys::KeyKind::Size => "number | string",
            keys::KeyKind::Table => "string | TableOptions",
            keys::KeyKind::Text => "string",
            keys::KeyKind::Texts => "readonly string[]",
        };
        out += &comment(&spelled(&short(key.docs)), "  ");
        let name = Names::Camel.spell(key.name);
        let _ = match key.is_required {
            true => writeln!(out, "  {name}: {kind};"),
            false => writeln!(out, "  {name}?: {kind} | undefined;"),
        };
    }
    out
}
