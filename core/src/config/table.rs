//! The table's part of the configuration: which memory, for how many tags.

use super::reader::{Names, Reader};
use super::value::{Entry, Value};
use crate::error::{Error, Result};
use crate::limit::rate::quoted;
use crate::table::{Geometry, MIN_SHARED_LINES, Table};

/// Room for so many tags, if nothing is said. Where memory must be there before it is used, and
/// one process is all there is, it is less.
const DEFAULT_TAGS: u64 = if cfg!(target_family = "wasm") { 1 << 14 } else { 1 << 20 };
/// 64 billion tags: 2 TB.
const MAX_TAGS: u64 = 1 << 36;
const MAX_NAME_BYTES: usize = 100;
/// So many keys may a table have had under a name that nobody chose, since the machine started.
pub(crate) const MAX_NAME_NUMBER: usize = 32;

/// Where the buckets live, and for how many tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableConfig {
    pub(crate) kind: TableKind,
    /// Nothing: the usual.
    pub(crate) size: Option<Result<Size, String>>,
    pub(crate) group: Option<String>,
    pub(crate) dir: Option<String>,
    /// Whether nobody chose the name.
    pub(crate) default_name: bool,
    /// Whether other nodes hear of what is in it.
    pub(crate) clustered: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TableKind {
    Private,
    Anonymous,
    Named(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Tags(u64),
    Bytes(u64),
}

impl TableConfig {
    /// A table that belongs to this process, and to each of its forked children another copy.
    pub fn private() -> TableConfig {
        TableConfig {
            kind: TableKind::Private,
            size: None,
            group: None,
            dir: None,
            default_name: false,
            clustered: false,
        }
    }

    /// A table shared with all children forked from now on: the default.
    pub fn anonymous() -> TableConfig {
        TableConfig { kind: TableKind::Anonymous, ..TableConfig::private() }
    }

    /// A table shared with every process of this user that gives the same name.
    pub fn named(name: impl Into<String>) -> TableConfig {
        TableConfig { kind: TableKind::Named(name.into()), ..TableConfig::private() }
    }

    /// These settings with another name.
    pub(crate) fn with_name(self, name: String) -> TableConfig {
        TableConfig { kind: TableKind::Named(name), ..self }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        match &self.kind {
            TableKind::Named(name) => Some(name),
            _ => None,
        }
    }

    /// The command that removes the table of this name in the same place.
    pub(crate) fn remove_command(&self, name: &str) -> String {
        let option = |flag, value: &Option<String>| {
            value.as_ref().map_or(String::new(), |value| format!(" --{flag} {value}"))
        };
        let place = option("group", &self.group) + &option("dir", &self.dir);
        format!("dthrottle table remove {name}{place}")
    }

    /// How many tags it has room for; a million by default.
    #[must_use]
    pub fn tags(self, tags: u64) -> TableConfig {
        TableConfig { size: Some(Ok(Size::Tags(tags))), ..self }
    }

    /// How many bytes it may take.
    #[must_use]
    pub fn bytes(self, bytes: u64) -> TableConfig {
        TableConfig { size: Some(Ok(Size::Bytes(bytes))), ..self }
    }

    /// The group, by name or number, whose members may all use the named table.
    #[must_use]
    pub fn group(self, group: impl Into<String>) -> TableConfig {
        TableConfig { group: Some(group.into()), ..self }
    }

    /// The directory for the named table's file; docs/table.md describes the default.
    #[must_use]
    pub fn dir(self, dir: impl Into<String>) -> TableConfig {
        TableConfig { dir: Some(dir.into()), ..self }
    }

    /// Whether the name is only the usual one, which nobody chose. In a cluster, a table of that
    /// name that has the key of another, or of none, is then left alone: `name-2` or so is taken.
    #[must_use]
    pub fn default_name(self, default_name: bool) -> TableConfig {
        TableConfig { default_name, ..self }
    }

    /// Reads a table given as a language's own object, or only its name.
    pub fn from_value(value: Value, names: Names) -> Result<TableConfig> {
        Reader { names, lines: Vec::new() }.table_config(&Entry::new("table", value))
    }

    /// The name, if nobody chose it and nothing else is known of the table.
    pub(super) fn name_if_default(&self) -> Option<&str> {
        let TableConfig { kind, size: None, group: None, dir: None, default_name: true, .. } = self
        else {
            return None;
        };
        match kind {
            TableKind::Named(name) => Some(name),
            _ => None,
        }
    }

    /// A table that an exchange between nodes can use.
    #[doc(hidden)]
    #[must_use]
    pub fn clustered(self) -> TableConfig {
        TableConfig { clustered: true, ..self }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if let TableKind::Named(name) = &self.kind {
            // Others may be numbered after it.
            let last =
                if self.default_name { format!("{name}-{MAX_NAME_NUMBER}") } else { name.clone() };
            check_table_name(&last).map_err(|message| Error::config("table.name", message))?;
        } else if self.group.is_some() {
            let message = "only a named table is shared with a group; add a name";
            return Err(Error::config("table.group", message));
        } else if self.dir.is_some() {
            let message = "only a named table is a file; add a name";
            return Err(Error::config("table.dir", message));
        } else if self.default_name {
            let message = "says what is known of a name; add a name";
            return Err(Error::config("table.default_name", message));
        }
        let fault = |message| Error::config("table.size", message);
        let size = self.size.clone().unwrap_or(Ok(Size::DEFAULT)).map_err(fault)?;
        match size {
            Size::Tags(1..=MAX_TAGS) => Ok(()),
            Size::Tags(tags) => Err(format!("{tags} tags; write 1 to {MAX_TAGS}")),
            Size::Bytes(bytes) => match self.geometry(size).bytes() as u64 <= bytes {
                true => Ok(()),
                false => Err(format!(
                    "{bytes} bytes are too few; the smallest table of this kind takes {}",
                    self.geometry(Size::Tags(1)).bytes()
                )),
            },
        }
        .map_err(fault)
    }

    /// The shape of a table that was checked.
    pub(crate) fn shape(&self) -> Geometry {
        let size = self.size.clone().and_then(Result::ok);
        self.geometry(size.unwrap_or(Size::DEFAULT))
    }

    fn geometry(&self, size: Size) -> Geometry {
        // A named table may be used by a clustered process at any time.
        let (fewest, kind) = match self.clustered || matches!(self.kind, TableKind::Named(_)) {
            true => (MIN_SHARED_LINES, Geometry::new(0).with_peer_slots()),
            false => (0, Geometry::new(0)),
        };
        match size {
            Size::Tags(tags) => kind.at_least(Table::lines_for(tags)).at_least(fewest),
            Size::Bytes(bytes) => kind.within(bytes).at_least(fewest),
        }
    }
}

impl Default for TableConfig {
    fn default() -> TableConfig {
        TableConfig::anonymous()
    }
}

impl Size {
    const DEFAULT: Size = Size::Tags(DEFAULT_TAGS);

    /// What a size must be.
    pub(crate) const EXPECTED: &str = r#"a number of tags, or bytes like "64 MB""#;

    /// A number of tags, or bytes such as `"64 MB"`.
    pub(crate) fn parse(text: &str) -> Result<Size, String> {
        let fault = || format!("{} is not a size; write {}", quoted(text), Size::EXPECTED);
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let number: u64 = number.parse().map_err(|_| fault())?;
        let factor = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "tags" => return Ok(Size::Tags(number)),
            "b" | "bytes" => 1,
            "k" | "kb" => 1000,
            "kib" => 1 << 10,
            "m" | "mb" => 1_000_000,
            "mib" => 1 << 20,
            "g" | "gb" => 1_000_000_000,
            "gib" => 1 << 30,
            _ => return Err(fault()),
        };
        number.checked_mul(factor).map(Size::Bytes).ok_or_else(fault)
    }

    /// A number of tags.
    pub(crate) fn from_number(number: f64) -> Result<Size, String> {
        match number >= 1.0 && number <= MAX_TAGS as f64 && number.fract() == 0.0 {
            true => Ok(Size::Tags(number as u64)),
            false => Err(format!("{number} tags; write a whole number from 1 to {MAX_TAGS}")),
        }
    }
}

/// Whether this can be the name of a table: it becomes part of a file's name.
pub(crate) fn check_table_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        Err(format!("a name of {} bytes; a table's name has 1 to {MAX_NAME_BYTES}", name.len()))
    } else if !name.chars().all(plain) || name.starts_with('.') {
        let name = quoted(name);
        Err(format!("{name}: use letters, digits, _, - and ., and do not begin with a point"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_tags_or_bytes() {
        for (text, size) in [
            ("5000", Size::Tags(5000)),
            ("5000 tags", Size::Tags(5000)),
            ("64MB", Size::Bytes(64_000_000)),
            (" 2 gib ", Size::Bytes(2 << 30)),
        ] {
            assert_eq!(Size::parse(text), Ok(size), "{text}");
        }
        for text in
            ["", "MB", "-5", "5 apples", "1.5 MB", "99999999999999999999", "9999999999999 GB"]
        {
            assert!(Size::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_table_keeps_to_its_bytes() {
        for bytes in [400_000, 10_000_000, 64_000_000, 64 << 20] {
            let shape = TableConfig::private().bytes(bytes).shape();
            assert!(shape.bytes() as u64 <= bytes);
            assert!(shape.bytes() as u64 > bytes - 20_000, "{} of {bytes}", shape.bytes());
        }
        assert!(TableConfig::private().bytes(1000).check().is_err());
        for clustered in [TableConfig::private().clustered(), TableConfig::named("x")] {
            let shape = clustered.bytes(64 << 20).shape();
            assert!(shape.bytes() as u64 <= 64 << 20 && shape.bytes() as u64 > (64 << 20) - 20_000);
        }
        assert!(TableConfig::named("x").bytes(4 << 20).check().is_err(), "too few lines to share");
    }

    #[test]
    fn a_million_tags_take_27_bytes_each() {
        let shape = TableConfig::anonymous().shape();
        assert_eq!(shape.bytes().div_ceil(1 << 20), 27, "{}", shape.bytes());
    }

    #[test]
    fn names_are_plain() {
        for name in ["", ".", "..", ".x", "a/b", "a b", "é", &"x".repeat(101)] {
            assert!(TableConfig::named(name).check().is_err(), "{name}");
        }
        assert!(TableConfig::named("web-1.example_com").check().is_ok());
        assert!(TableConfig::private().group("www-data").check().is_err());
    }
}
