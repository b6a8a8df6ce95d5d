//! Configuration: domains and their rules, table and cluster, from TOML, from an object of a language,
//! or built up.
//!
//! Whatever the source, one check (`Config::check`) looks at the values. The readers only look at the
//! shape, and remember on which line each field stood. It uses `limit` for rates and rules, and of
//! `os/` only the reading of files.

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
// ClusterConfig, and with the feature Reports and read_secret.
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

/// Rules in all domains together: the table numbers them with 10 bits.
const MAX_TOTAL_RULES: usize = 1000;
const MAX_NAME_BYTES: usize = 255;

/// Domains and their rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The default domain is always there, and the first.
    pub(crate) domains: Vec<DomainConfig>,
    pub(crate) dry_run: bool,
    pub(crate) table: TableConfig,
    pub(crate) cluster: Option<ClusterConfig>,
    /// What [`Config::prepare`] has seen and the user should know.
    pub(crate) warnings: Vec<String>,
}

/// One domain's part of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DomainConfig {
    pub(crate) name: String,
    pub(crate) rules: Vec<Rule>,
    /// Nothing: as the throttle.
    pub(crate) dry_run: Option<bool>,
    /// One rule, written without a list: errors must name its fields as the user did.
    pub(crate) short: bool,
    /// Written under `domains`, not at the top level.
    pub(crate) under_domains: bool,
    /// The user asked for no rules, by `rate = "unlimited"` or an empty list of rules.
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

    /// Reads a configuration given as a language's own object.
    pub fn from_value(root: &ConfigNode, names: Names) -> Result<Config> {
        read::config(root, names)
    }

    /// Adds a rule to a domain, which is made if it is not there. [`Rule::unlimited`] adds none.
    pub fn add_rule(&mut self, domain: &str, rule: Rule) {
        self.domain_mut(domain).add(rule);
    }

    /// Whether refusals are only counted, in every domain that does not say otherwise.
    pub fn set_dry_run(&mut self, dry_run: bool) {
        self.dry_run = dry_run;
    }

    /// Whether refusals are only counted in this domain, which is made if it is not there.
    pub fn set_domain_dry_run(&mut self, domain: &str, dry_run: bool) {
        self.domain_mut(domain).dry_run = Some(dry_run);
    }

    /// Where the buckets live.
    pub fn set_table(&mut self, table: TableConfig) {
        let clustered = table.clustered || self.cluster.is_some();
        self.table = TableConfig { clustered, ..table };
    }

    /// The name of the table, if it has one.
    pub fn table_name(&self) -> Option<&str> {
        match &self.table.kind {
            TableKind::Named(name) => Some(name),
            _ => None,
        }
    }

    /// Names the table, if nothing was said of whose it is: for hosts whose processes are not
    /// forked from the one that opens it. `is_default`: nobody relies on the name, as
    /// [`TableConfig::default_name`] says.
    pub fn name_table(&mut self, name: &str, is_default: bool) {
        if self.table.kind == TableKind::Anonymous {
            self.table.kind = TableKind::Named(name.into());
            self.table.default_name = is_default;
        }
    }

    /// Takes a table that is described outside of this configuration, such as in an option of
    /// middleware. If the configuration describes a table itself, a `table` that is only a usual
    /// name does what [`Config::name_table`] does, and any other is an error.
    pub fn add_table(&mut self, table: TableConfig) -> Result<()> {
        let default = TableConfig { clustered: self.table.clustered, ..TableConfig::default() };
        if self.table == default {
            self.set_table(table);
        } else if let Some(name) = table.name_if_default() {
            self.name_table(name, true);
        } else if table != TableConfig::default() {
            let message = "the configuration describes a table already; change it there";
            return Err(Error::config("table", message));
        }
        Ok(())
    }

    /// How many rules a domain has; nothing: there is no such domain.
    pub fn rule_count(&self, domain: &str) -> Option<usize> {
        let found = self.domains.iter().find(|known| known.name == domain);
        found.map(|domain| domain.rules.len())
    }

    /// Looks at every value, and reads the secret of the cluster if it is in a file: all that can
    /// be done before a table is opened. What is right here may be opened later, by a process that
    /// may no longer read that file.
    pub fn prepare(&mut self) -> Result<()> {
        self.validate()?;
        if let Some(cluster) = &mut self.cluster {
            self.warnings.extend(cluster.load()?);
        }
        Ok(())
    }

    /// Adds a warning to those of the throttle that is built from this.
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

    /// Whether a throttle can be built from this; what is wrong otherwise.
    pub fn validate(&self) -> Result<()> {
        self.check(Names::Snake)?;
        // Not when it is read: rules may be added to a configuration from a file.
        if self.domains.iter().all(|domain| domain.rules.is_empty() && !domain.unlimited) {
            let message = "no domain has a rule, so nothing would be limited; \
                           give rate, or rate = \"unlimited\"";
            return Err(Error::config("rate", message));
        }
        Ok(())
    }

    /// Looks at every value: the first that cannot be is an error that names its field.
    pub(crate) fn check(&self, names: Names) -> Result<()> {
        self.table.check()?;
        if let Some(cluster) = &self.cluster {
            cluster.check(names)?;
        }
        for domain in &self.domains {
            check_name(&domain.name).map_err(|message| Error::config(domain.path(), message))?;
            domain.check()?;
        }
        let rules: usize = self.domains.iter().map(|domain| domain.rules.len()).sum();
        if rules > MAX_TOTAL_RULES {
            let message = format!("{rules} rules in all domains; at most {MAX_TOTAL_RULES} fit");
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
            let message = format!("too many rules; a domain has at most {MAX_RULES}");
            return Err(Error::config(self.field("rules"), message));
        }
        let names: Vec<String> = self.rule_names().collect();
        for (i, (rule, name)) in self.rules.iter().zip(&names).enumerate() {
            check_name(name)
                .map_err(|message| self.fault(i, RuleFieldError { key: "name", message }))?;
            if names[..i].contains(name) {
                let message = format!("{name:?} is the name of an earlier rule; choose another");
                return Err(self.fault(i, RuleFieldError { key: "name", message }));
            }
            rule.scale().map_err(|fault| self.fault(i, fault))?;
        }
        Ok(())
    }

    /// The names of the rules, also of those that were given none.
    pub(crate) fn rule_names(&self) -> impl Iterator<Item = String> {
        let names = self.rules.iter().enumerate();
        names.map(|(i, rule)| rule.name.clone().unwrap_or_else(|| format!("rule{}", i + 1)))
    }

    /// An error about a field of a rule.
    pub(crate) fn fault(&self, rule: usize, fault: RuleFieldError) -> Error {
        let field = match self.short {
            true => self.field(fault.key),
            false => self.field(&format!("rules[{rule}].{}", fault.key)),
        };
        Error::config(field, fault.message)
    }

    /// Whether it limits anything, or was asked not to.
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
        Err(format!("a name of {} bytes; a name has 1 to {MAX_NAME_BYTES}", name.len()))
    } else if name.contains(char::is_control) {
        Err(format!("{}: a name must not contain control characters", quoted(name)))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_daemon_is_left_to_it() {
        let text = "rate = 5\n\n[daemon]\nhttp = \"[::]:80\"\n";
        let (config, daemon) = Config::with_daemon(text).unwrap();
        assert_eq!(config, Config::from_toml("rate = 5").unwrap());
        let daemon = daemon.unwrap();
        let Value::Table(entries) = &daemon.node.value else { panic!("{daemon:?}") };
        assert_eq!((entries[0].key.as_str(), entries[0].line), ("http", Some(4)));
        // A library that reads the same file does not look at it; in an object it is a mistake.
        assert!(Config::from_toml(text).is_ok());
        let object = Value::Table(vec![Entry::new("daemon", Value::Bool(true))]).into();
        assert_eq!(Config::from_value(&object, Names::Snake).unwrap_err().field(), Some("daemon"));
    }

    #[test]
    fn only_a_table_without_a_name_is_named() {
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
    fn a_table_is_added_only_to_a_configuration_without_one() {
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
