//! Converts a configuration tree to a `Config`. Defines the keys and the type of each value.

use super::reader::{ConfigTable, Keys, Names, Reader, join};
use super::table::{Size, TableConfig, TableKind};
use super::value::{ConfigNode, Entry, Value};
use super::{Config, DomainConfig, MAX_TOTAL_RULES};
use crate::error::{Error, Result};
use crate::limit::decide::MAX_RULES;
use crate::limit::rate::{Burst, Rate, quoted};
use crate::limit::rule::Rule;
use crate::records::keys;

const RULE_KEYS: Keys = &[keys::RULE_NAMES, keys::SHORT_NAMES];
const DOMAIN_KEYS: Keys = &[keys::SHORT_NAMES, keys::DOMAIN_NAMES];
const TOP_KEYS: Keys = &[keys::SHORT_NAMES, keys::DOMAIN_NAMES, keys::TOP_NAMES];

pub(super) fn config(root: &ConfigNode, names: Names) -> Result<Config> {
    let mut reader = Reader { names, lines: Vec::new() };
    let top = reader.table(root, "", TOP_KEYS)?;
    let mut config = Config::default();
    config.domains[0].read(&mut reader, &top, "")?;
    config.dry_run = config.domains[0].dry_run.take().unwrap_or(false);
    if let Some(entry) = top.get("table") {
        config.set_table(reader.table_config(entry)?);
    }
    if let Some(entry) = top.get("cluster") {
        config.set_cluster(reader.cluster(entry)?);
    }
    if let Some(entry) = top.get("domains") {
        let Value::Table(domains) = &entry.node.value else {
            return Err(reader.wrong(entry, "", "a table of domains"));
        };
        reader.lines.push(("domains".into(), entry.line));
        if domains.len() > MAX_TOTAL_RULES {
            let message =
                format!("must have at most {MAX_TOTAL_RULES} domains, got {}", domains.len());
            return Err(Error::config("domains", message).at_line(entry.line));
        }
        for (i, entry) in domains.iter().enumerate() {
            let path = join("domains", &entry.key);
            if domains[..i].iter().any(|earlier| earlier.key == entry.key) {
                return Err(Error::config(path, "is given twice; remove one").at_line(entry.line));
            }
            reader.lines.push((path.clone(), entry.line));
            let table = reader.table(&entry.node, &path, DOMAIN_KEYS)?;
            if entry.key == Config::DEFAULT
                && (config.domains[0].short || !config.domains[0].rules.is_empty())
            {
                let message = "must not have rules when rules of the default domain are given at \
                               the top level; write them in one place";
                return Err(Error::config(path, message).at_line(entry.line));
            }
            let domain = config.domain_mut(&entry.key);
            domain.under_domains = true;
            domain.read(&mut reader, &table, &path)?;
        }
    }
    config.check(names).map_err(|fault| {
        let line = fault.field().and_then(|field| reader.line_of(field));
        fault.at_line(line)
    })?;
    Ok(config)
}

impl DomainConfig {
    fn read(&mut self, reader: &mut Reader, table: &ConfigTable<'_>, path: &str) -> Result<()> {
        if let Some(entry) = table.get("dry_run") {
            self.dry_run = Some(reader.bool(entry, path)?);
        }
        if let Some(entry) = table.get("rules") {
            if let Some(short) = table.first(keys::SHORT_NAMES) {
                let message = "must not be given together with `rules`; \
                               put rate and burst into a rule of that list";
                return Err(Error::config(join(path, &short.key), message).at_line(short.line));
            }
            let Value::List(rules) = &entry.node.value else {
                return Err(reader.wrong(entry, path, "a list of rules"));
            };
            let list = join(path, &entry.key);
            reader.lines.push((list.clone(), entry.line));
            self.unlimited = rules.is_empty();
            // `Config::check` reports too many rules, so it is enough to read one too many.
            for (i, node) in rules.iter().take(MAX_RULES + 1).enumerate() {
                let path = format!("{list}[{i}]");
                let table = reader.table(node, &path, RULE_KEYS)?;
                let Some(rate) = table.get("rate") else {
                    let message = r#"is missing; add a rate such as "100/s""#;
                    return Err(Error::config(join(&path, "rate"), message).at_line(node.line));
                };
                reader.lines.push((path.clone(), node.line));
                self.rules.push(reader.rule(rate, &table, &path)?);
            }
        } else if let Some(rate) = table.get("rate") {
            self.short = true;
            self.add(reader.rule(rate, table, path)?);
        } else if let Some(misplaced) = table.first(&["burst", "charge_refused"]) {
            let message = r#"has no effect without a rate; add one such as rate = "100/s""#;
            return Err(Error::config(join(path, &misplaced.key), message).at_line(misplaced.line));
        }
        Ok(())
    }
}

impl Reader {
    fn rule(&mut self, rate: &Entry, table: &ConfigTable<'_>, path: &str) -> Result<Rule> {
        for (key, entry) in &table.0 {
            self.lines.push((join(path, key), entry.node.line.or(entry.line)));
        }
        let mut rule = match &rate.node.value {
            Value::Text(text) => Rule::parse(text),
            Value::Number(number) => Rule::from_parts(Rate::from_number(*number)),
            _ => {
                return Err(self.wrong(
                    rate,
                    path,
                    r#"a rate such as "100/s", or a number per second"#,
                ));
            }
        };
        if let Some(entry) = table.get("burst") {
            rule.burst = match &entry.node.value {
                Value::Text(text) if is_number(text) => Err(number_as_text(text, Burst::EXPECTED)),
                Value::Text(text) => Burst::parse(text),
                Value::Number(number) => Burst::from_number(*number),
                _ => {
                    return Err(self.wrong(entry, path, Burst::EXPECTED));
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

    pub(super) fn table_config(&mut self, entry: &Entry) -> Result<TableConfig> {
        self.lines.push(("table".into(), entry.line));
        if let Value::Text(name) = &entry.node.value {
            self.lines.push(("table.name".into(), entry.node.line.or(entry.line)));
            return Ok(TableConfig::named(name));
        }
        if !matches!(entry.node.value, Value::Table(_)) {
            let expected = r#"a name such as "web", or a table of name, size, group, dir, private"#;
            return Err(self.wrong(entry, "", expected));
        }
        let table = self.table(&entry.node, "table", &[keys::TABLE_NAMES])?;
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
            if config.kind == TableKind::Private {
                let message = "must not be set for a private table; remove `name` or `private`";
                return Err(Error::config("table.name", message).at_line(entry.line));
            }
            config = TableConfig::named(self.text(entry, "table")?);
        }
        if let Some(entry) = table.get("size") {
            config.size = Some(match &entry.node.value {
                Value::Text(text) if is_number(text) => Err(number_as_text(text, Size::EXPECTED)),
                Value::Text(text) => Size::parse(text),
                Value::Number(number) => Size::from_number(*number),
                _ => {
                    return Err(self.wrong(entry, "table", Size::EXPECTED));
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
        if let Some(entry) = table.get("default_name") {
            config = config.default_name(self.bool(entry, "table")?);
        }
        Ok(config)
    }
}

/// Returns true if `text` is a whole number without a unit. TOML and objects have numbers, so such
/// text is most likely a setting that the application forgot to convert.
pub(super) fn is_number(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the message about a number that is given as text.
pub(super) fn number_as_text(text: &str, expected: &str) -> String {
    format!("must be {expected}, got the text {}", quoted(text))
}
