//! Configuration: domains and their rules, the table and the cluster. It is read from TOML or from
//! an object of another language, or built with methods.
//!
//! The readers check which keys and types a tree has, and remember the line of each field.
//! `Config::check` checks the values, whatever their source. This module uses `limit` for rates and
//! rules, and of `os/` only the function that reads files.

#[cfg(feature = "busy")]
mod busy;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "no_cluster.rs"]
mod cluster;
#[cfg(feature = "serde")]
mod deserialize;
mod read;
mod reader;
mod table;
#[cfg(feature = "config")]
mod text;
mod value;

#[doc(hidden)]
pub use crate::limit::rate::parse_duration;
#[cfg(feature = "busy")]
pub use busy::{BusyConfig, Mode};
// `ClusterConfig`, and with the feature `cluster` also `Reports` and `read_secret`.
pub use cluster::*;
pub use reader::Names;
#[cfg(feature = "web")]
pub(crate) use reader::edit_distance;
#[doc(hidden)]
pub use reader::{ConfigTable, Keys, Reader};
pub use table::TableConfig;
pub(crate) use table::{MAX_NAME_NUMBER, Size, TableKind, check_table_name};
#[cfg(all(feature = "config", feature = "web"))]
pub(crate) use text::parse as parse_toml;
pub use value::{ConfigNode, Entry, Value};

use crate::error::{Error, Result};
use crate::limit::decide::MAX_RULES;
use crate::limit::rate::quoted;
use crate::limit::rule::{Rule, RuleFieldError};

/// The maximum number of rules in all domains together. The table numbers rules with 10 bits.
const MAX_TOTAL_RULES: usize = 1000;
const MAX_NAME_BYTES: usize = 255;

/// The configuration of a throttle: its domains with their rules, its table and its cluster.
///
/// [`Throttle::builder`](crate::Throttle::builder) builds one with methods. docs/configuration.md
/// describes the format in TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The default domain is always the first.
    pub(crate) domains: Vec<DomainConfig>,
    pub(crate) dry_run: bool,
    pub(crate) table: TableConfig,
    pub(crate) cluster: Option<ClusterConfig>,
    /// Warnings from [`Config::prepare`] and [`Config::add_warning`].
    pub(crate) warnings: Vec<String>,
}

/// The configuration of one domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DomainConfig {
    pub(crate) name: String,
    pub(crate) rules: Vec<Rule>,
    /// `None` uses the setting of the throttle.
    pub(crate) dry_run: Option<bool>,
    /// Whether the domain has one rule that is not in a list. Error messages then name `rate`, not
    /// `rules[0].rate`.
    pub(crate) short: bool,
    /// Whether the domain is given under `domains` and not at the top level.
    pub(crate) under_domains: bool,
    /// Whether the user asked for no rules, by `rate = "unlimited"` or an empty list.
    pub(crate) unlimited: bool,
}

impl Default for Config {
    fn default() -> Config {
        let default = DomainConfig { name: Config::DEFAULT.into(), ..DomainConfig::default() };
        let table = TableConfig::default();
        Config {
            domains: vec![default],
            dry_run: false,
            table,
            cluster: None,
            warnings: Vec::new(),
        }
    }
}

impl Config {
    /// The name of the default domain.
    pub const DEFAULT: &str = "default";

    /// Reads a configuration from a tree of values.
    ///
    /// # Errors
    ///
    /// If a key is unknown or a value is wrong. The error names the field.
    pub fn from_value(root: &ConfigNode, names: Names) -> Result<Config> {
        read::config(root, names)
    }

    /// Adds a rule to a domain, and creates the domain if necessary. [`Rule::unlimited`] adds no
    /// rule, but declares that the domain allows everything.
    pub fn add_rule(&mut self, domain: &str, rule: Rule) {
        self.domain_mut(domain).add(rule);
    }

    /// Sets dry run for all domains without a setting of their own: refusals are counted, but all
    /// checks are allowed.
    pub fn set_dry_run(&mut self, dry_run: bool) {
        self.dry_run = dry_run;
    }

    /// Sets dry run for one domain, and creates the domain if necessary.
    pub fn set_domain_dry_run(&mut self, domain: &str, dry_run: bool) {
        self.domain_mut(domain).dry_run = Some(dry_run);
    }

    /// Sets the table, which is the memory of the buckets.
    pub fn set_table(&mut self, table: TableConfig) {
        let clustered = table.clustered || self.cluster.is_some();
        self.table = TableConfig { clustered, ..table };
    }

    /// Returns the name of the table, if it has one.
    pub fn table_name(&self) -> Option<&str> {
        match &self.table.kind {
            TableKind::Named(name) => Some(name),
            _ => None,
        }
    }

    /// Names the table, unless the configuration already names it or makes it private. For hosts
    /// whose processes are not forked from the one that opens the table. `is_default` has the
    /// meaning of [`TableConfig::default_name`].
    pub fn name_table(&mut self, name: &str, is_default: bool) {
        if self.table.kind == TableKind::Anonymous {
            self.table.kind = TableKind::Named(name.into());
            self.table.default_name = is_default;
        }
    }

    /// Adds a table that is described outside of this configuration, such as in an option of
    /// middleware. If the configuration already describes a table, a `table` that has only a
    /// default name is handled like [`Config::name_table`].
    ///
    /// # Errors
    ///
    /// If both describe a table.
    pub fn add_table(&mut self, table: TableConfig) -> Result<()> {
        let default = TableConfig { clustered: self.table.clustered, ..TableConfig::default() };
        if self.table == default {
            self.set_table(table);
        } else if let Some(name) = table.name_if_default() {
            self.name_table(name, true);
        } else if table != TableConfig::default() {
            let message = "is already described in the configuration; change it there";
            return Err(Error::config("table", message));
        }
        Ok(())
    }

    /// Returns the number of rules of a domain, or `None` if there is no such domain.
    pub fn rule_count(&self, domain: &str) -> Option<usize> {
        let found = self.domains.iter().find(|known| known.name == domain);
        found.map(|domain| domain.rules.len())
    }

    /// Checks every value, and reads the secret of the cluster if it is in a file. A process
    /// without access to that file can then open the throttle.
    ///
    /// # Errors
    ///
    /// If a value is wrong or the file cannot be read.
    pub fn prepare(&mut self) -> Result<()> {
        self.validate()?;
        if let Some(cluster) = &mut self.cluster {
            self.warnings.extend(cluster.load()?);
        }
        Ok(())
    }

    /// Adds a warning, which the throttle built from this configuration will return.
    #[doc(hidden)]
    pub fn add_warning(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    pub(crate) fn domain_mut(&mut self, name: &str) -> &mut DomainConfig {
        let found = self.domains.iter().position(|domain| domain.name == name);
        let index = found.unwrap_or_else(|| {
            let name = name.to_string();
            self.domains.push(DomainConfig { name, under_domains: true, ..Default::default() });
            self.domains.len() - 1
        });
        &mut self.domains[index]
    }

    /// Checks that a throttle can be built from this configuration.
    ///
    /// # Errors
    ///
    /// If a value is wrong or no domain has a rule.
    pub fn validate(&self) -> Result<()> {
        self.check(Names::Snake)?;
        // Only here and not when a file is read, because the program may add rules.
        if self.domains.iter().all(|domain| domain.rules.is_empty() && !domain.unlimited) {
            let message = "is missing: without a rule in any domain nothing is limited; \
                           set a rate such as \"100/s\", or rate = \"unlimited\"";
            return Err(Error::config("rate", message));
        }
        Ok(())
    }

    /// Checks every value, and returns an error about the first wrong one.
    pub(crate) fn check(&self, names: Names) -> Result<()> {
        self.table.check(names)?;
        if let Some(cluster) = &self.cluster {
            cluster.check(names)?;
        }
        for domain in &self.domains {
            check_name(&domain.name).map_err(|message| Error::config(domain.path(), message))?;
            domain.check()?;
        }
        let rules: usize = self.domains.iter().map(|domain| domain.rules.len()).sum();
        if rules > MAX_TOTAL_RULES {
            let message =
                format!("must have at most {MAX_TOTAL_RULES} rules in total, got {rules}");
            return Err(Error::config("domains", message));
        }
        Ok(())
    }
}

impl DomainConfig {
    pub(crate) fn add(&mut self, rule: Rule) {
        match rule.is_unlimited() {
            true => self.unlimited = true,
            false => self.rules.push(rule),
        }
    }

    fn check(&self) -> Result<()> {
        if self.rules.len() > MAX_RULES {
            let message = format!("must have at most {MAX_RULES} rules");
            return Err(Error::config(self.field("rules"), message));
        }
        let names: Vec<String> = self.rule_names().collect();
        for (i, (rule, name)) in self.rules.iter().zip(&names).enumerate() {
            check_name(name)
                .map_err(|message| self.fault(i, RuleFieldError { key: "name", message }))?;
            if names[..i].contains(name) {
                let message =
                    format!("must be unique in its domain; an earlier rule is named {name:?}");
                return Err(self.fault(i, RuleFieldError { key: "name", message }));
            }
            rule.scale().map_err(|fault| self.fault(i, fault))?;
        }
        Ok(())
    }

    /// Returns the names of the rules. A rule without a name is `rule1`, `rule2`, ... by position.
    pub(crate) fn rule_names(&self) -> impl Iterator<Item = String> {
        let names = self.rules.iter().enumerate();
        names.map(|(i, rule)| rule.name.clone().unwrap_or_else(|| format!("rule{}", i + 1)))
    }

    /// Returns the error about a field of a rule.
    pub(crate) fn fault(&self, rule: usize, fault: RuleFieldError) -> Error {
        let field = match self.short {
            true => self.field(fault.key),
            false => self.field(&format!("rules[{rule}].{}", fault.key)),
        };
        Error::config(field, fault.message)
    }

    /// Whether the domain has rules, or was declared unlimited.
    #[cfg(feature = "web")]
    pub(crate) fn has_rules(&self) -> bool {
        self.unlimited || !self.rules.is_empty()
    }

    fn field(&self, key: &str) -> String {
        match self.under_domains {
            true => format!("{}.{key}", self.path()),
            false => key.to_string(),
        }
    }

    fn path(&self) -> String {
        reader::join("domains", &self.name)
    }
}

pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        Err(format!("must have 1 to {MAX_NAME_BYTES} bytes, got {}", name.len()))
    } else if name.contains(char::is_control) {
        Err(format!("must not contain control characters, got {}", quoted(name)))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_daemon_returns_the_daemon_table_unread() {
        let text = "rate = 5\n\n[daemon]\nhttp = \"[::]:80\"\n";
        let (config, daemon) = Config::with_daemon(text).unwrap();
        assert_eq!(config, Config::from_toml("rate = 5").unwrap());
        let daemon = daemon.unwrap();
        let Value::Table(entries) = &daemon.node.value else { panic!("{daemon:?}") };
        assert_eq!((entries[0].key.as_str(), entries[0].line), ("http", Some(4)));
        // Libraries that read the same file ignore it. In an object it is an unknown key.
        assert!(Config::from_toml(text).is_ok());
        let object = Value::Table(vec![Entry::new("daemon", Value::Bool(true))]).into();
        assert_eq!(Config::from_value(&object, Names::Snake).unwrap_err().field(), Some("daemon"));
    }

    #[test]
    fn name_table_names_only_an_anonymous_table() {
        for (text, name) in [
            ("", Some("x")),
            ("table = { size = 5 }", Some("x")),
            ("table = 'web'", Some("web")),
            ("table = { private = true }", None),
        ] {
            let mut config = Config::from_toml(text).unwrap();
            config.name_table("x", false);
            assert_eq!(config.table_name(), name, "{text}");
        }
    }

    #[test]
    fn add_table_fails_if_the_configuration_describes_a_table() {
        let default_named = || TableConfig::named("x").default_name(true);
        for text in ["", "[table]", "[domains]\ntable = { rate = 5 }", "[cluster]\nname = 'c'"] {
            let mut config = Config::from_toml(text).unwrap();
            config.add_table(TableConfig::named("y").tags(9)).unwrap();
            assert_eq!(config.table_name(), Some("y"), "{text}");
            assert_eq!(config.table.clustered, text.starts_with("[cluster]"));
        }
        for (text, name) in [
            ("[table]\nsize = 9", Some("x")),
            ("[table]\nname = 'web'", Some("web")),
            ("[table]\nprivate = true", None),
        ] {
            let mut config = Config::from_toml(text).unwrap();
            for table in [TableConfig::named("x"), default_named().tags(9), TableConfig::private()]
            {
                assert_eq!(config.add_table(table).unwrap_err().field(), Some("table"), "{text}");
            }
            config.add_table(TableConfig::default()).unwrap();
            config.add_table(default_named()).unwrap();
            assert_eq!(config.table_name(), name, "{text}");
        }
    }
}
