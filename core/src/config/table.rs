//! The configuration of the table: in which memory it is, and for how many tags.

use super::reader::{Names, Reader};
use super::value::{Entry, Value};
use crate::error::{Error, Result};
use crate::limit::rate::quoted;
use crate::table::{Geometry, MIN_SHARED_LINES, Table};

/// The default number of tags. WebAssembly has one process, and allocates memory before it is used.
const DEFAULT_TAGS: u64 = if cfg!(target_family = "wasm") { 1 << 14 } else { 1 << 20 };
/// 2^36 tags, which take 2 TB.
const MAX_TAGS: u64 = 1 << 36;
const MAX_NAME_BYTES: usize = 100;
/// The highest number that is appended to a default name: `web-2` to `web-32`. So at most 32 keys
/// can be in use under one default name.
pub(crate) const MAX_NAME_NUMBER: usize = 32;

/// The table of a throttle: the memory of its buckets, and how many tags it has room for.
///
/// Wrong values are reported when the throttle is built, so that calls can be chained:
///
/// ```
/// use dthrottle::{Rule, TableConfig, Throttle};
///
/// let table = TableConfig::private().tags(10_000);
/// let throttle = Throttle::builder().rule(Rule::per_second(5)).table(table).build()?;
/// # Ok::<(), dthrottle::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableConfig {
    pub(crate) kind: TableKind,
    /// `None` uses `Size::DEFAULT`.
    pub(crate) size: Option<Result<Size, String>>,
    pub(crate) group: Option<String>,
    pub(crate) dir: Option<String>,
    /// Whether the name is a default that the user did not choose.
    pub(crate) default_name: bool,
    /// Whether a cluster exchanges the contents of the table.
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
    /// Creates a table for this process only. Each forked child gets its own copy.
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

    /// Creates a table that is shared with all children forked later. This is the default.
    pub fn anonymous() -> TableConfig {
        TableConfig { kind: TableKind::Anonymous, ..TableConfig::private() }
    }

    /// Creates a table that is shared with every process of this user that uses the same name. The
    /// name has 1 to 100 letters, digits, `_`, `-` and `.`, and does not begin with a dot.
    pub fn named(name: impl Into<String>) -> TableConfig {
        TableConfig { kind: TableKind::Named(name.into()), ..TableConfig::private() }
    }

    /// Returns these settings with another name.
    pub(crate) fn with_name(self, name: String) -> TableConfig {
        TableConfig { kind: TableKind::Named(name), ..self }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        match &self.kind {
            TableKind::Named(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the shell command that removes the table `name` in the same directory.
    pub(crate) fn remove_command(&self, name: &str) -> String {
        let option = |flag, value: &Option<String>| {
            value.as_ref().map_or(String::new(), |value| format!(" --{flag} {value}"))
        };
        let options = option("group", &self.group) + &option("dir", &self.dir);
        format!("dthrottle table remove {name}{options}")
    }

    /// Sets the number of tags that the table has room for, 1 to 2^36. The default is 2^20.
    #[must_use]
    pub fn tags(self, tags: u64) -> TableConfig {
        TableConfig { size: Some(Ok(Size::Tags(tags))), ..self }
    }

    /// Sets the most bytes that the table may use, instead of the number of tags.
    #[must_use]
    pub fn bytes(self, bytes: u64) -> TableConfig {
        TableConfig { size: Some(Ok(Size::Bytes(bytes))), ..self }
    }

    /// Sets the group whose members may use the named table, by name or number.
    #[must_use]
    pub fn group(self, group: impl Into<String>) -> TableConfig {
        TableConfig { group: Some(group.into()), ..self }
    }

    /// Sets the directory of the named table's file. docs/table.md describes the default.
    #[must_use]
    pub fn dir(self, dir: impl Into<String>) -> TableConfig {
        TableConfig { dir: Some(dir.into()), ..self }
    }

    /// Sets whether the name is a default that the user did not choose. In a cluster, if a table of
    /// that name belongs to another cluster or to none, `name-2` (or the next free number) is then
    /// used instead of failing.
    #[must_use]
    pub fn default_name(self, default_name: bool) -> TableConfig {
        TableConfig { default_name, ..self }
    }

    /// Reads a table from a tree of values, or from its name alone.
    ///
    /// # Errors
    ///
    /// If a key is unknown or a value has the wrong type.
    pub fn from_value(value: Value, names: Names) -> Result<TableConfig> {
        Reader { names, lines: Vec::new() }.table_config(&Entry::new("table", value))
    }

    /// Returns the name if it is a default name and no other setting was made.
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

    /// Makes the table usable for the exchange between nodes.
    #[doc(hidden)]
    #[must_use]
    pub fn clustered(self) -> TableConfig {
        TableConfig { clustered: true, ..self }
    }

    pub(crate) fn check(&self, names: Names) -> Result<()> {
        if let TableKind::Named(name) = &self.kind {
            // A number may be appended to a default name.
            let last =
                if self.default_name { format!("{name}-{MAX_NAME_NUMBER}") } else { name.clone() };
            check_table_name(&last).map_err(|message| Error::config("table.name", message))?;
        } else if self.group.is_some() {
            let message = "needs a named table; add `name`";
            return Err(Error::config("table.group", message));
        } else if self.dir.is_some() {
            let message = "needs a named table; add `name`";
            return Err(Error::config("table.dir", message));
        } else if self.default_name {
            let message = "needs a named table; add `name`";
            let field = format!("table.{}", names.spell("default_name"));
            return Err(Error::config(field, message));
        }
        let error = |message| Error::config("table.size", message);
        let size = self.size.clone().unwrap_or(Ok(Size::DEFAULT)).map_err(error)?;
        match size {
            Size::Tags(1..=MAX_TAGS) => Ok(()),
            Size::Tags(tags) => Err(format!(
                r#"must be 1 to {MAX_TAGS} tags, or bytes such as "64 MB", got {tags}"#
            )),
            Size::Bytes(bytes) => match self.geometry(size).bytes() as u64 <= bytes {
                true => Ok(()),
                false => Err(format!(
                    "must be at least {} bytes for this kind of table, got {bytes} bytes",
                    self.geometry(Size::Tags(1)).bytes()
                )),
            },
        }
        .map_err(error)
    }

    /// Returns the geometry of the table. The size must have been checked.
    pub(crate) fn shape(&self) -> Geometry {
        let size = self.size.clone().and_then(Result::ok);
        self.geometry(size.unwrap_or(Size::DEFAULT))
    }

    fn geometry(&self, size: Size) -> Geometry {
        // A process of a cluster may open a named table at any time.
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

    /// Describes a valid size in messages.
    pub(crate) const EXPECTED: &str = r#"a number of tags, or bytes like "64 MB""#;

    /// Parses a number of tags, or bytes such as `"64 MB"`.
    pub(crate) fn parse(text: &str) -> Result<Size, String> {
        let error = || format!("must be {}, got {}", Size::EXPECTED, quoted(text));
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let number: u64 = number.parse().map_err(|_| error())?;
        let factor = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "tags" => return Ok(Size::Tags(number)),
            "b" | "bytes" => 1,
            "k" | "kb" => 1000,
            "kib" => 1 << 10,
            "m" | "mb" => 1_000_000,
            "mib" => 1 << 20,
            "g" | "gb" => 1_000_000_000,
            "gib" => 1 << 30,
            _ => return Err(error()),
        };
        number.checked_mul(factor).map(Size::Bytes).ok_or_else(error)
    }

    /// Converts a number of tags.
    pub(crate) fn from_number(number: f64) -> Result<Size, String> {
        match number >= 1.0 && number <= MAX_TAGS as f64 && number.fract() == 0.0 {
            true => Ok(Size::Tags(number as u64)),
            false => {
                Err(format!("must be a whole number of tags from 1 to {MAX_TAGS}, got {number}"))
            }
        }
    }
}

/// Checks the name of a table, which becomes part of a file name.
pub(crate) fn check_table_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        Err(format!("must have 1 to {MAX_NAME_BYTES} bytes, got {}", name.len()))
    } else if !name.chars().all(plain) || name.starts_with('.') {
        let rule = "must have only letters, digits, _, - and ., and must not begin with a dot";
        Err(format!("{rule}, got {}", quoted(name)))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_parse_accepts_tags_and_bytes() {
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
    fn a_table_with_a_size_in_bytes_uses_almost_all_of_them() {
        for bytes in [400_000, 10_000_000, 64_000_000, 64 << 20] {
            let shape = TableConfig::private().bytes(bytes).shape();
            assert!(shape.bytes() as u64 <= bytes);
            assert!(shape.bytes() as u64 > bytes - 20_000, "{} of {bytes}", shape.bytes());
        }
        assert!(TableConfig::private().bytes(1000).check(Names::Snake).is_err());
        for clustered in [TableConfig::private().clustered(), TableConfig::named("x")] {
            let shape = clustered.bytes(64 << 20).shape();
            assert!(shape.bytes() as u64 <= 64 << 20 && shape.bytes() as u64 > (64 << 20) - 20_000);
        }
        assert!(
            TableConfig::named("x").bytes(4 << 20).check(Names::Snake).is_err(),
            "fewer lines than a shared table needs"
        );
    }

    #[test]
    fn the_default_table_uses_27_bytes_per_tag() {
        let shape = TableConfig::anonymous().shape();
        assert_eq!(shape.bytes().div_ceil(1 << 20), 27, "{}", shape.bytes());
    }

    #[test]
    fn a_table_name_must_be_a_plain_file_name() {
        for name in ["", ".", "..", ".x", "a/b", "a b", "é", &"x".repeat(101)] {
            assert!(TableConfig::named(name).check(Names::Snake).is_err(), "{name}");
        }
        assert!(TableConfig::named("web-1.example_com").check(Names::Snake).is_ok());
        assert!(TableConfig::private().group("www-data").check(Names::Snake).is_err());
    }
}
