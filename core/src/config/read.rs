//! A tree to a configuration: which keys there are, and what kind of value each takes.

use super::table::{Kind, Size, TableConfig};
use super::value::{Entry, Node, Value};
use super::{Config, DomainConfig, MAX_RULES_IN_ALL};
use crate::decide::MAX_RULES;
use crate::error::{Error, Result};
use crate::rate::{Burst, Rate, quoted};
use crate::rule::Rule;

/// How the keys of an object are spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// `charge_refused`, as in TOML and Python.
    Snake,
    /// `chargeRefused`, as in JavaScript.
    Camel,
}

const RULE_KEYS: &[&str] = &["name", "rate", "burst", "charge_refused"];
const DOMAIN_KEYS: &[&str] = &["rate", "burst", "charge_refused", "rules", "dry_run"];
const TOP_KEYS: &[&str] =
    &["rate", "burst", "charge_refused", "rules", "dry_run", "domains", "table"];
const TABLE_KEYS: &[&str] = &["name", "size", "group", "dir", "private"];

pub(super) fn config(root: &Node, names: Names) -> Result<Config> {
    let mut reader = Reader { names, lines: Vec::new() };
    let top = reader.table(root, "", TOP_KEYS)?;
    let mut config = Config::default();
    config.domains[0].read(&mut reader, &top, "")?;
    config.dry_run = config.domains[0].dry_run.take().unwrap_or(false);
    if let Some(entry) = top.get("table") {
        config.table = reader.table_config(entry)?;
    }
    if let Some(entry) = top.get("domains") {
        let Value::Table(domains) = &entry.node.value else {
            return Err(reader.kind(entry, "", "a table of domains"));
        };
        reader.lines.push(("domains".into(), entry.line));
        if domains.len() > MAX_RULES_IN_ALL {
            let message = format!("{} domains; at most {MAX_RULES_IN_ALL} fit", domains.len());
            return Err(Error::config("domains", message).at_line(entry.line));
        }
        for (i, entry) in domains.iter().enumerate() {
            let path = join("domains", &entry.key);
            if domains[..i].iter().any(|earlier| earlier.key == entry.key) {
                return Err(Error::config(path, "given twice").at_line(entry.line));
            }
            reader.lines.push((path.clone(), entry.line));
            let table = reader.table(&entry.node, &path, DOMAIN_KEYS)?;
            if entry.key == Config::DEFAULT && !config.domains[0].rules.is_empty() {
                let message = "the default domain has its rules at the top level; \
                               write them in one place";
                return Err(Error::config(path, message).at_line(entry.line));
            }
            let domain = config.domain_mut(&entry.key);
            domain.under_domains = true;
            domain.read(&mut reader, &table, &path)?;
        }
    }
    config.check().map_err(|fault| {
        let line = fault.field().and_then(|field| reader.line_of(field));
        fault.at_line(line)
    })?;
    Ok(config)
}

impl DomainConfig {
    fn read(&mut self, reader: &mut Reader, table: &Table<'_>, path: &str) -> Result<()> {
        if let Some(entry) = table.get("dry_run") {
            self.dry_run = Some(reader.bool(entry, path)?);
        }
        if let Some(entry) = table.get("rules") {
            if let Some(short) = table.first(&["rate", "burst", "charge_refused"]) {
                let message =
                    "cannot stand beside rules; put rate and burst into a rule of that list";
                return Err(Error::config(join(path, &short.key), message).at_line(short.line));
            }
            let Value::List(rules) = &entry.node.value else {
                return Err(reader.kind(entry, path, "a list of rules"));
            };
            let list = join(path, &entry.key);
            reader.lines.push((list.clone(), entry.line));
            // Too many are told by the check of the values; there is no need to read them all.
            for (i, node) in rules.iter().take(MAX_RULES + 1).enumerate() {
                let path = format!("{list}[{i}]");
                let table = reader.table(node, &path, RULE_KEYS)?;
                let Some(rate) = table.get("rate") else {
                    let message = r#"a rule needs a rate; add one like "100/s""#;
                    return Err(Error::config(join(&path, "rate"), message).at_line(node.line));
                };
                reader.lines.push((path.clone(), node.line));
                self.rules.push(reader.rule(rate, &table, &path)?);
            }
        } else if let Some(rate) = table.get("rate") {
            self.short = true;
            self.rules.push(reader.rule(rate, table, path)?);
        } else if let Some(stray) = table.first(&["burst", "charge_refused"]) {
            let message = r#"has no meaning without a rate; add one like rate = "100/s""#;
            return Err(Error::config(join(path, &stray.key), message).at_line(stray.line));
        }
        Ok(())
    }
}

/// A table whose keys are known.
struct Table<'a>(Vec<(&'static str, &'a Entry)>);

impl<'a> Table<'a> {
    fn get(&self, key: &str) -> Option<&'a Entry> {
        self.0.iter().find(|(known, _)| *known == key).map(|(_, entry)| *entry)
    }

    fn first(&self, keys: &[&str]) -> Option<&'a Entry> {
        self.0.iter().find(|(known, _)| keys.contains(known)).map(|(_, entry)| *entry)
    }
}

struct Reader {
    names: Names,
    /// Where each field stands, for the check of the values.
    lines: Vec<(String, Option<u32>)>,
}

impl Reader {
    fn table<'a>(
        &self,
        node: &'a Node,
        path: &str,
        keys: &'static [&'static str],
    ) -> Result<Table<'a>> {
        let Value::Table(entries) = &node.value else {
            let message = format!("{} is not a table of {}", node.value, self.list(keys));
            return Err(Error::config(path, message).at_line(node.line));
        };
        let known = |entry: &'a Entry| {
            let found = keys.iter().find(|key| self.spell(key) == entry.key);
            found.map(|key| (*key, entry)).ok_or_else(|| self.unknown(entry, path, keys))
        };
        let table = Table(entries.iter().map(known).collect::<Result<_>>()?);
        let twice =
            (1..table.0.len()).find(|i| table.0[..*i].iter().any(|(key, _)| *key == table.0[*i].0));
        match twice {
            None => Ok(table),
            Some(i) => Err(Error::config(join(path, &entries[i].key), "given twice")),
        }
    }

    fn rule(&mut self, rate: &Entry, table: &Table<'_>, path: &str) -> Result<Rule> {
        for (key, entry) in &table.0 {
            self.lines.push((join(path, key), entry.node.line.or(entry.line)));
        }
        let mut rule = Rule::from_parts(match &rate.node.value {
            Value::Text(text) => Rate::parse(text),
            Value::Number(number) => Rate::from_number(*number),
            _ => return Err(self.kind(rate, path, r#"a rate such as "100/s", or a number"#)),
        });
        if let Some(entry) = table.get("burst") {
            rule.burst = match &entry.node.value {
                Value::Text(text) => Burst::parse(text),
                Value::Number(number) => Burst::from_number(*number),
                _ => {
                    let fix = r#"a whole number, or a duration like "10s""#;
                    return Err(self.kind(entry, path, fix));
                }
            };
        }
        if let Some(entry) = table.get("name") {
            rule = rule.name(self.text(entry, path)?);
        }
        if let Some(entry) = table.get("charge_refused") {
            rule = rule.charge_refused(self.bool(entry, path)?);
        }
        Ok(rule)
    }

    fn table_config(&mut self, entry: &Entry) -> Result<TableConfig> {
        self.lines.push(("table".into(), entry.line));
        if let Value::Text(name) = &entry.node.value {
            self.lines.push(("table.name".into(), entry.node.line.or(entry.line)));
            return Ok(TableConfig::named(name));
        }
        if !matches!(entry.node.value, Value::Table(_)) {
            let fix = r#"a name such as "web", or a table of name, size, group, dir, private"#;
            return Err(self.kind(entry, "", fix));
        }
        let table = self.table(&entry.node, "table", TABLE_KEYS)?;
        for (key, entry) in &table.0 {
            self.lines.push((join("table", key), entry.node.line.or(entry.line)));
        }
        let mut config = TableConfig::anonymous();
        if let Some(entry) = table.get("private")
            && self.bool(entry, "table")?
        {
            config = TableConfig::private();
        }
        if let Some(entry) = table.get("name") {
            if config.kind == Kind::Private {
                let message = "a private table has no name; leave out one of the two";
                return Err(Error::config("table.name", message).at_line(entry.line));
            }
            config = TableConfig::named(self.text(entry, "table")?);
        }
        if let Some(entry) = table.get("size") {
            config.size = Some(match &entry.node.value {
                Value::Text(text) => Size::parse(text),
                Value::Number(number) => Size::from_number(*number),
                _ => {
                    let fix = r#"a number of tags, or bytes like "64 MB""#;
                    return Err(self.kind(entry, "table", fix));
                }
            });
        }
        if let Some(entry) = table.get("group") {
            config = config.group(match &entry.node.value {
                Value::Number(number) => number.to_string(),
                _ => self.text(entry, "table")?.to_string(),
            });
        }
        if let Some(entry) = table.get("dir") {
            config = config.dir(self.text(entry, "table")?);
        }
        Ok(config)
    }

    fn text<'a>(&self, entry: &'a Entry, path: &str) -> Result<&'a str> {
        match &entry.node.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.kind(entry, path, "text")),
        }
    }

    fn bool(&self, entry: &Entry, path: &str) -> Result<bool> {
        match entry.node.value {
            Value::Bool(value) => Ok(value),
            _ => Err(self.kind(entry, path, "true or false")),
        }
    }

    /// The error about a value of the wrong kind.
    fn kind(&self, entry: &Entry, path: &str, fix: &str) -> Error {
        let message = format!("{} is not possible here; write {fix}", entry.node.value);
        Error::config(join(path, &entry.key), message).at_line(entry.node.line)
    }

    fn unknown(&self, entry: &Entry, path: &str, keys: &'static [&'static str]) -> Error {
        // A key of great length is near to none, and comparing would take long.
        let comparable = if entry.key.len() <= 64 { keys } else { &[] };
        let near = comparable.iter().map(|key| (distance(&self.spell(key), &entry.key), key)).min();
        let hint = match near {
            Some((0..=2, key)) => format!("did you mean {}?", self.spell(key)),
            _ => format!("the keys here are {}", self.list(keys)),
        };
        Error::config(join(path, &entry.key), format!("unknown key; {hint}")).at_line(entry.line)
    }

    fn list(&self, keys: &[&str]) -> String {
        let keys: Vec<String> = keys.iter().map(|key| self.spell(key)).collect();
        keys.join(", ")
    }

    fn spell(&self, key: &str) -> String {
        match self.names {
            Names::Snake => key.to_string(),
            Names::Camel => {
                let (first, rest) = key.split_once('_').unwrap_or((key, ""));
                let capital = rest.chars().next().map(|c| c.to_ascii_uppercase());
                first.chars().chain(capital).chain(rest.chars().skip(1)).collect()
            }
        }
    }

    /// The line of a field, or of what it belongs to if it was not written.
    fn line_of(&self, field: &str) -> Option<u32> {
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
fn distance(a: &str, b: &str) -> usize {
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
