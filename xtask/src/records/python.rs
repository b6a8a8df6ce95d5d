//! The stub of the native module, the decision of a daemon, the exceptions, and the types of
//! configurations.

use std::fmt::Write;

use dthrottle::records::keys::{self, Key};
use dthrottle::records::{Field, FieldKind};

use super::{DECISION, RECORDS, error_kinds, short};

/// Returns the marked parts of _dthrottle.pyi.
pub(super) fn stub() -> Vec<(&'static str, String)> {
    let mut out = String::new();
    for record in RECORDS {
        if !out.is_empty() {
            out += "\n";
        }
        let _ = writeln!(out, "@final\nclass {}:", record.name);
        for field in record.fields {
            let _ = writeln!(
                out,
                "    @property\n    def {}(self) -> {}: ...",
                field.name,
                kind(field)
            );
        }
        if record.name == "Decision" {
            out += "    def __bool__(self) -> bool: ...\n";
        }
        out += "    def __eq__(self, other: object, /) -> bool: ...\n    def __hash__(self) -> int: ...\n";
    }
    vec![("records", out + "\n")]
}

fn kind(field: &Field) -> &'static str {
    match field.kind {
        FieldKind::Flag => "bool",
        FieldKind::Count | FieldKind::Units | FieldKind::Balance | FieldKind::Id => "int",
        FieldKind::Time | FieldKind::Millis => "float",
        FieldKind::Rule | FieldKind::Address => "str | None",
        FieldKind::Word | FieldKind::State => "str",
        FieldKind::Peers => "list[PeerStats]",
        FieldKind::Counts => "dict[str, int]",
    }
}

/// Returns the marked parts of client.py.
pub(super) fn client() -> Vec<(&'static str, String)> {
    let mut fields = String::from("    allowed: bool\n");
    let mut read = String::new();
    for field in &DECISION.fields[1..] {
        let Field { name, kind: of, .. } = field;
        let (default, from) = match of {
            FieldKind::Flag => ("False", format!("bool(numbers.get(\"{name}\", 0))")),
            FieldKind::Units => ("UNLIMITED", format!("numbers.get(\"{name}\", UNLIMITED)")),
            FieldKind::Balance => ("_BOUNDLESS", format!("numbers.get(\"{name}\", _BOUNDLESS)")),
            FieldKind::Time | FieldKind::Millis => {
                ("0.0", format!("numbers.get(\"{name}_ns\", 0) / 1e9"))
            }
            FieldKind::Rule => ("None", format!("names.get(\"{name}\")")),
            _ => ("0", format!("numbers.get(\"{name}\", 0)")),
        };
        let _ = writeln!(fields, "    {name}: {} = {default}", kind(field));
        let _ = writeln!(read, "        {name}={from},");
    }
    vec![("fields", fields), ("reading", read)]
}

/// Returns the marked parts of errors.py.
pub(super) fn errors() -> Vec<(&'static str, String)> {
    let mut classes = String::new();
    let mut names = String::new();
    for kind_of_error in error_kinds() {
        let (class, base, kind) =
            (kind_of_error.class, kind_of_error.base, kind_of_error.kind.name());
        let docs = short(&kind_of_error.docs).replace('`', "``");
        let _ = write!(
            classes,
            "class {class}(DthrottleError, {base}):\n    \"\"\"{docs}\"\"\"\n\n    kind = \"{kind}\"\n\n\n"
        );
        let _ = writeln!(names, "        {class},");
    }
    vec![("classes", classes), ("names", names)]
}

/// Returns the marked parts of config.py.
pub(super) fn shapes() -> Vec<(&'static str, String)> {
    // A rate is required in a list of rules, and only there.
    let rest = &keys::SHORT[1..];
    vec![
        ("rule", members(&[keys::RULE, rest])),
        ("domain", members(&[keys::SHORT, keys::DOMAIN])),
        ("table", members(&[keys::TABLE])),
        ("cluster", members(&[&keys::CLUSTER[1..]])),
    ]
}

fn members(lists: &[&[Key]]) -> String {
    let mut out = String::new();
    for key in lists.iter().copied().flatten() {
        let kind = match key.kind {
            keys::KeyKind::Bool => "bool",
            keys::KeyKind::Burst | keys::KeyKind::Rate => "str | float",
            keys::KeyKind::Cluster => "ClusterConfig",
            keys::KeyKind::Domains => "Domains",
            keys::KeyKind::Group => "str | int",
            keys::KeyKind::Mode => "Literal[\"live\", \"document\"]",
            keys::KeyKind::Number => "float",
            keys::KeyKind::Reports => "Literal[\"eager\", \"periodic\"]",
            keys::KeyKind::Rules => "list[RuleConfig] | tuple[RuleConfig, ...]",
            keys::KeyKind::Secret => "str | SecretFile",
            keys::KeyKind::Size => "int | str",
            keys::KeyKind::Table => "str | TableConfig",
            keys::KeyKind::Text => "str",
            keys::KeyKind::Texts => "list[str] | tuple[str, ...]",
            keys::KeyKind::Whole => "int",
        };
        let _ = writeln!(out, "    {}: {kind}", key.name);
    }
    out
}
