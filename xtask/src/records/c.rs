//! The structs of the C header, as Rust source for cbindgen, and their INIT macros.

use std::fmt::Write;

use dthrottle::records::{Field, FieldKind};

use super::{DECISION, RECORDS, Record, error_kinds, short, whole, wrapped};

/// A struct of the header.
struct Struct {
    name: &'static str,
    /// NAME of the C type dthrottle_NAME_t in cbindgen.toml.
    header: &'static str,
    record: Record,
    /// A flag that only C has, and its description.
    extra: Option<(&'static str, &'static str)>,
    /// Whether rules are names instead of indexes.
    has_names: bool,
}

fn all() -> Vec<Struct> {
    let names = [
        ("Decision", "decision"),
        ("Stats", "stats"),
        ("BusyStats", "busy_stats"),
        ("ClusterStats", "cluster_stats"),
        ("Peer", "peer"),
        ("Event", "event"),
    ];
    let structs = names.into_iter().zip(RECORDS).map(|((name, header), record)| {
        let in_cluster = ("in_cluster", "Whether the throttle belongs to a cluster.");
        let extra = (name == "ClusterStats").then_some(in_cluster);
        Struct { name, header, record, extra, has_names: false }
    });
    let failed_open =
        Some(("failed_open", "The daemon did not answer in time, so the check is allowed."));
    let client = Struct {
        name: "ClientDecision",
        header: "client_decision",
        record: DECISION,
        extra: failed_open,
        has_names: true,
    };
    structs.chain([client]).collect()
}

/// A field of a C struct.
struct Member {
    name: String,
    kind: &'static str,
    docs: String,
    initial: &'static str,
    /// An expression for its value, from the field `it.NAME` of the record.
    from: String,
    /// Whether the first version of the struct does not have it.
    is_late: bool,
}

impl Struct {
    fn member(&self, at: usize, field: &Field) -> Option<Member> {
        let is_late = at >= self.record.first;
        let name = field.name;
        let from = format!("it.{name}");
        let docs = short(field.docs).replace('`', "");
        let note = match field.kind {
            FieldKind::Units => " DTHROTTLE_UNLIMITED in a domain without rules.",
            FieldKind::Rule if self.has_names => " Its name, ended by NUL. Empty if there is none.",
            FieldKind::Rule => " Its index, for dthrottle_rule_name(). -1 if there is none.",
            _ => "",
        };
        let (kind, initial, from) = match field.kind {
            // A later field must have no padding after it.
            FieldKind::Flag if is_late => ("u64", "0", format!("{from}.into()")),
            FieldKind::Flag => {
                ("Flag", if at == 0 { "true" } else { "false" }, format!("{from}.into()"))
            }
            FieldKind::Count | FieldKind::Units | FieldKind::Id => ("u64", "0", from),
            FieldKind::Balance => ("i64", "0", from),
            FieldKind::Time | FieldKind::Millis => ("u64", "0", format!("ns({from})")),
            FieldKind::Rule if self.has_names => {
                ("[c_char; 256]", "\"\"", format!("{from}.map_or([0; 256], |_| chars(rule))"))
            }
            FieldKind::Rule if is_late => ("i64", "-1", format!("index({from})")),
            FieldKind::Rule => ("i32", "-1", format!("index({from}) as i32")),
            FieldKind::Word => ("[c_char; 32]", "\"\"", format!("chars({from})")),
            FieldKind::State => ("[c_char; 16]", "\"\"", format!("chars({from})")),
            FieldKind::Address => ("[c_char; 64]", "\"\"", format!("address({from})")),
            FieldKind::Peers => ("u64", "0", format!("{from}.len() as u64")),
            // `dthrottle_cluster_count` returns the counters by name.
            FieldKind::Counts => return None,
        };
        let name = match field.kind {
            FieldKind::Time | FieldKind::Millis => format!("{name}_ns"),
            FieldKind::Peers => "peer_count".into(),
            _ => name.into(),
        };
        let docs = match field.kind {
            FieldKind::Peers => {
                "The number of current and recent peers, for dthrottle_cluster_peer().".into()
            }
            _ => docs,
        };
        Some(Member { name, kind, docs: docs + note, initial, from, is_late })
    }

    /// Returns the fields after `size`. Those of the first version with less than 8 bytes are
    /// first.
    fn members(&self) -> Vec<Member> {
        let fields = self.record.fields.iter().enumerate();
        let mut members: Vec<Member> = fields.filter_map(|(at, f)| self.member(at, f)).collect();
        members.extend(self.extra.map(|(name, docs)| Member {
            name: name.into(),
            kind: "Flag",
            docs: docs.into(),
            initial: "false",
            from: format!("{name}.into()"),
            is_late: false,
        }));
        members.sort_by_key(|member| match member.kind {
            "Flag" => 0,
            "i32" => 1,
            _ if member.is_late => 3,
            _ => 2,
        });
        members
    }

    fn definition(&self) -> String {
        let Struct { name, header, record, .. } = self;
        let header_name = header.to_uppercase();
        let about = short(record.about).replace('`', "");
        let about = format!("{about} Begin with DTHROTTLE_{header_name}_INIT.");
        let about = match *name {
            "Decision" => about + " After an error it is allowed.",
            "ClientDecision" => about.replacen("a check.", "a check by a daemon.", 1),
            _ => about,
        };
        let mut out = wrapped(&about, 100, "/// ");
        out += &format!("#[repr(C)]\n#[derive(Clone, Copy)]\npub struct {name} {{\n");
        out += &format!("    /// sizeof(dthrottle_{header}_t).\n    pub size: usize,\n");
        for member in self.members() {
            out += &wrapped(&member.docs, 100, "    /// ");
            out += &format!("    pub {}: {},\n", member.name, member.kind);
        }
        out + "}\n\n"
    }

    fn conversion(&self) -> String {
        let Struct { name, record, .. } = self;
        let extra = self.extra.map_or(String::new(), |(name, _)| format!(", {name}: bool"));
        let rule = if self.has_names { ", rule: &str" } else { "" };
        let module = if record.name == "BusyStats" { "core::busy" } else { "core" };
        let mut out =
            format!("impl {name} {{\n    pub(crate) fn of(it: &{module}::{}", record.name);
        out += &format!("{extra}{rule}) -> {name} {{\n        {name} {{\n");
        out += &format!("            size: {name}::MIN_SIZE,\n");
        for Member { name, from, .. } in self.members() {
            out += &match name == from {
                true => format!("            {name},\n"),
                false => format!("            {name}: {from},\n"),
            };
        }
        out + "        }\n    }\n}\n\n"
    }

    fn version(&self) -> String {
        let members = self.members();
        let Struct { name, .. } = self;
        let first = members.iter().find(|member| member.is_late);
        let first = match first {
            Some(first) => format!("offset_of!({name}, {})", first.name),
            None => format!("size_of::<{name}>()"),
        };
        members.last().map_or(String::new(), |last| {
            format!("    {name} ends with {}: {}, first version {first};\n", last.name, last.kind)
        })
    }
}

/// Returns the text of bindings-c/src/records.rs.
pub(super) fn structs() -> String {
    let mut out = String::from(
        "//! The structs of the header that are records of core, and the error numbers. Generated by\n\
         //! `cargo run -p xtask -- records` from the lists in core/src/records/.\n\n\
         use std::ffi::c_char;\n\
         use std::mem::offset_of;\n\n\
         use dthrottle_core as core;\n\n\
         use crate::ffi::{Flag, VersionedStruct, address, chars, index, ns};\n\n\
         /// The call succeeded.\n\
         pub const DTHROTTLE_OK: i32 = 0;\n",
    );
    for kind_of_error in error_kinds() {
        out += &wrapped(&whole(&kind_of_error.docs).replace('`', ""), 100, "/// ");
        let name = kind_of_error.kind.name().to_uppercase();
        let number = kind_of_error.kind.number();
        let _ = writeln!(out, "pub const DTHROTTLE_ERR_{name}: i32 = {number};");
    }
    out += "\n";
    let all = all();
    all.iter().for_each(|one| out += &one.definition());
    all.iter().for_each(|one| out += &one.conversion());
    out += "versioned_structs! {\n";
    all.iter().for_each(|one| out += &one.version());
    out + "}\n"
}

/// Returns the INIT macros of the structs.
pub(crate) fn initialisers() -> String {
    let mut out = String::new();
    for one in all() {
        let name = one.header.to_uppercase();
        let values: Vec<&str> = one.members().iter().map(|member| member.initial).collect();
        let values = values.join(", ");
        let _ = write!(
            out,
            "\n#define DTHROTTLE_{name}_INIT \\\n    {{ sizeof(dthrottle_{}_t), {values} }}",
            one.header
        );
    }
    out
}
