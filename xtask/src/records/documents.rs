//! Tables of documents, and the names of fields for the tests of every language.

use std::fmt::Write;

use dthrottle::config::Names;
use dthrottle::records::keys::{self, Key};

use super::{DECISION, RECORDS, javascript, whole};

/// Returns the marked parts of docs/semantics.md.
pub(super) fn semantics() -> Vec<(&'static str, String)> {
    let mut out = String::from("| field | meaning |\n|---|---|\n");
    for field in DECISION.fields {
        let _ = writeln!(out, "| `{}` | {} |", field.name, whole(field.docs));
    }
    vec![("decision", out)]
}

/// Returns the text of tests/vectors/records.json: the fields of each record and the keys of each
/// table, with their names in Rust and Python, in JSON, and in JavaScript.
pub(super) fn names() -> String {
    let quoted = |names: Vec<String>| {
        let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        format!("[{}]", names.join(", "))
    };
    let mut lines = Vec::new();
    for record in RECORDS {
        let rust = record.fields.iter().map(|field| field.name.into()).collect();
        let json = record.fields.iter().map(|field| field.json().into()).collect();
        let camel = record.fields.iter().map(javascript::name).collect();
        let [rust, json, camel] = [rust, json, camel].map(quoted);
        lines.push(format!(
            "\"{}\": {{\"names\": {rust}, \"json\": {json}, \"js\": {camel}}}",
            record.name
        ));
    }
    let tables: [(&str, &[&[Key]]); 5] = [
        ("rule", &[keys::RULE, keys::SHORT]),
        ("throttle", &[keys::SHORT, keys::DOMAIN, keys::TOP]),
        ("table", &[keys::TABLE]),
        ("cluster", &[keys::CLUSTER]),
        ("busy", &[keys::BUSY]),
    ];
    for (table, lists) in tables {
        let names: Vec<&str> = lists.iter().copied().flatten().map(|key| key.name).collect();
        let camel = names.iter().map(|name| Names::Camel.spell(name)).collect();
        let names = names.into_iter().map(Into::into).collect();
        let [names, camel] = [names, camel].map(quoted);
        lines.push(format!("\"{table}\": {{\"names\": {names}, \"js\": {camel}}}"));
    }
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}
