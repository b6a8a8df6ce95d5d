//! Makes a middleware from its options. Its throttle is the application's own, or is made from a
//! rate, rules, or a file.

use std::time::Duration;

use super::fields::{Headers, Policy};
use super::label::label;
use super::middleware::{Middleware, Source};
use super::names::GivenOptions;
use super::options::{Cost, Options};
use super::shared::{AddedDomains, SharedThrottle, ThrottleSettings};
use crate::Domain;
use crate::clock::Clock;
use crate::config::{Config, ConfigNode, DomainConfig, Entry, Names, TableConfig, Value};
use crate::convert::MAX_FLOAT_COST;
use crate::error::{Error, Result};

/// Options that describe a throttle.
const THROTTLE_OPTIONS: &[&str] = &[
    "file",
    "rate",
    "burst",
    "charge_refused",
    "rules",
    "domains",
    "cluster",
    "clock",
    "window",
    "limit",
    "max",
    "table",
];
const RULE_OPTIONS: &[&str] = &["rate", "burst", "charge_refused", "rules"];
const WINDOW_OPTIONS: &[&str] = &["window", "limit", "max"];

/// Settings of the adapter, beside the options of the user.
#[derive(Clone, Debug, Default)]
pub struct AdapterSettings<'a> {
    /// A domain of the application's own throttle, which the option `throttle` gave.
    pub domain: Option<Domain>,
    /// The clock that the option `clock` gave.
    pub clock: Option<Clock>,
    /// Unix time in milliseconds, where the clock is moved by hand to follow the host's. Without it a
    /// manual clock is taken to count from 1970.
    pub unix_ms: Option<fn() -> u64>,
    /// The key of the fingerprints, where this crate has no randomness.
    pub fingerprint_key: Option<[u64; 2]>,
    /// The name of the running application: its table has this name if the user gives none.
    pub application: Option<&'a str>,
    /// Distinguishes this middleware from others of the application with the same methods and
    /// routes; becomes part of its domain's name.
    pub place: &'a str,
    /// Whether routes may complete the options, so that [`Options::check_allow`] is left to the
    /// adapter.
    pub is_template: bool,
    /// The throttle to use, for limits that share one throttle among themselves only.
    pub within: Option<&'a SharedThrottle>,
}

#[cfg(feature = "config")]
impl Middleware {
    /// Reads the options of a middleware in TOML, for adapters without functions of an application:
    /// `tag = "request"` says that each request brings its tag, and methods and routes are left to
    /// the adapter.
    pub fn from_toml(text: &str, setup: AdapterSettings<'_>) -> Result<Middleware> {
        let mut root = crate::config::parse_toml(text)?;
        if let Value::Table(entries) = &mut root.value {
            for entry in entries {
                if entry.key == "tag" && entry.node.value == Value::Text("request".into()) {
                    entry.node.value = Value::Function;
                } else if entry.key == "methods" || entry.key == "routes" {
                    let message = "is not read here; compare the request before asking about it";
                    return Err(Error::config(entry.key.clone(), message).at_line(entry.line));
                }
            }
        }
        Middleware::read(&root, Names::Snake, setup)
    }
}

impl Middleware {
    /// Reads the options of a middleware. Everything wrong with them is an error now; tables are
    /// opened by [`Middleware::open`], or by the first request.
    pub fn read(root: &ConfigNode, names: Names, setup: AdapterSettings<'_>) -> Result<Middleware> {
        let given = GivenOptions::read(root, names)?;
        let options = Options::from_given(&given)?;
        if !setup.is_template {
            options.check_allow()?;
        }
        if let Some(domain) = setup.domain {
            for option in THROTTLE_OPTIONS {
                if given.has(option) {
                    let message = "the throttle has its own; give it there";
                    return Err(given.misuse(option, message));
                }
            }
            let headers = Headers::of_domain(options.headers, options.legacy_headers, &domain);
            check_cost(&given, &options, headers.policies())?;
            return Ok(Middleware::of(options, Source::Given(domain), headers, setup.unix_ms));
        }
        let mut config = given.config(&setup)?;
        if setup.clock.is_none()
            && let Some(application) = setup.application
        {
            config.name_table(application, true);
        }
        let (domains, name) = given.domains(&mut config, &options, setup.place)?;
        let is_named = options.domain.is_some() || given.has("domains") || given.has("file");
        config.check(names)?;
        let origin = ThrottleSettings { config, clock: setup.clock, key: setup.fingerprint_key };
        let wanted = domains.iter().position(|domain| domain.name == name).unwrap_or(0);
        let rules = policies(&domains[wanted])?;
        check_cost(&given, &options, &rules)?;
        let mut domains = domains;
        domains.swap(0, wanted);
        let AddedDomains { throttle, name: joined, collides } =
            SharedThrottle::add_domains(origin, domains.clone(), is_named, setup.within);
        let policies = match joined == name {
            true => rules,
            false => self::policies(&DomainConfig { name: joined.clone(), ..domains.remove(0) })?,
        };
        let headers = Headers::new(options.headers, options.legacy_headers, policies);
        let renamed = joined != name;
        let source = Source::Shared(throttle, joined.clone());
        let middleware = Middleware::of(options, source, headers, setup.unix_ms);
        if collides {
            middleware.warn("DTHROTTLE_SAME_DOMAIN", collision(&name, &joined, renamed));
        }
        if let Some(window) = given.window()? {
            let message = format!(
                "{} and limit are taken as the rate {window:?}: a bucket that fills all the time, \
                 with no window that ends",
                given.spell("window")
            );
            middleware.warn("DTHROTTLE_WINDOW", message);
        }
        Ok(middleware)
    }
}

impl GivenOptions<'_> {
    /// The configuration of the throttle: that of a file, or that of the options.
    fn config(&self, setup: &AdapterSettings<'_>) -> Result<Config> {
        let private =
            matches!(self.get("table").map(|entry| &entry.node.value), Some(Value::Bool(false)));
        let table = self.get("table").filter(|_| !private);
        let mut config = match self.text("file")? {
            Some(path) => {
                let others = THROTTLE_OPTIONS.iter().filter(|key| !["file", "table"].contains(key));
                for option in others {
                    if self.has(option) {
                        let message = format!("{path} has that; give it there");
                        return Err(self.misuse(option, message));
                    }
                }
                let mut config = from_file(path)?;
                let table = match table {
                    _ if private => Some(TableConfig::private()),
                    None => None,
                    Some(table) => {
                        Some(TableConfig::from_value(table.node.value.clone(), self.names)?)
                    }
                };
                if let Some(table) = table {
                    config.add_table(table).map_err(|error| error.in_file(path))?;
                }
                config
            }
            None => {
                let mut config = self.config_of_options(table)?;
                if private {
                    config.set_table(TableConfig::private());
                }
                config
            }
        };
        if setup.clock.is_some() && table.is_none() {
            config.set_table(TableConfig::anonymous());
        }
        Ok(config)
    }

    fn config_of_options(&self, table: Option<&Entry>) -> Result<Config> {
        let window = self.window()?;
        if window.is_none() && !["rate", "rules", "domains"].iter().any(|key| self.has(key)) {
            let message = "is missing; give one such as \"100/s\", or rules, a file, or a throttle";
            return Err(Error::config("rate", message));
        }
        let keys = RULE_OPTIONS.iter().chain(&["domains", "cluster"]);
        let mut entries: Vec<Entry> =
            keys.filter_map(|key| self.get(key)).chain(table).cloned().collect();
        if let Some(window) = window {
            entries.push(Entry::new("rate", Value::Text(window)));
        }
        Config::from_value(&Value::Table(entries).into(), self.names)
    }

    /// The rate that a window and its limit say.
    fn window(&self) -> Result<Option<String>> {
        let Some(first) = self.first(WINDOW_OPTIONS) else { return Ok(None) };
        if let Some(max) = self.get("max").filter(|_| self.has("limit")) {
            return Err(self.wrong(max, "left out: it is another name for limit"));
        }
        let Some(limit) = self.first(&["limit", "max"]) else {
            let message =
                format!("is missing beside {}; or give a rate such as \"100/s\"", first.key);
            return Err(Error::config("limit", message));
        };
        let name = self.spell("window");
        let Some(window) = self.get("window") else {
            let message =
                format!("is missing beside {}; or give a rate such as \"100/s\"", limit.key);
            return Err(Error::config(name, message));
        };
        let whole = |entry: &Entry, right: &str| match entry.node.value {
            Value::Number(n) if n.fract() == 0.0 && (1.0..=MAX_FLOAT_COST).contains(&n) => {
                Ok(n as u64)
            }
            _ => Err(self.wrong(entry, right)),
        };
        let ms = whole(window, "whole milliseconds, 1 or more")?;
        let most = whole(limit, "a whole number, 1 or more")?;
        for key in ["rate", "rules", "domains"] {
            if let Some(entry) = self.get(key) {
                let message = format!("repeats {name} and {}; give one of them", limit.key);
                return Err(Error::config(entry.key.clone(), message).at_line(entry.line));
            }
        }
        Ok(Some(format!("{most} per {ms} ms")))
    }

    /// The domains of a configuration, and the name of the one to use.
    fn domains(
        &self,
        config: &mut Config,
        options: &Options,
        place: &str,
    ) -> Result<(Vec<DomainConfig>, String)> {
        let mut domains = std::mem::take(&mut config.domains);
        let has_several = self.has("domains") || self.has("file");
        config.domains = vec![Config::default().domains.remove(0)];
        config.domains[0].unlimited = true;
        let methods = options.methods.as_deref().unwrap_or_default();
        let name = match &options.domain {
            Some(name) => name.clone(),
            None if has_several => Config::DEFAULT.into(),
            None => label(place, methods, &options.routes),
        };
        if !has_several {
            domains.truncate(1);
            domains[0].name.clone_from(&name);
            crate::config::check_name(&name).map_err(|message| Error::config("domain", message))?;
            return Ok((domains, name));
        }
        domains.retain(|domain| domain.has_rules() || domain.name == name);
        let known: Vec<String> = domains.iter().map(|domain| domain.name.clone()).collect();
        let found = domains.iter().find(|domain| domain.name == name);
        match found {
            Some(domain) if domain.has_rules() => Ok((domains, name)),
            _ => {
                let message =
                    format!("must be one of the domains {}, got {name:?}", known.join(", "));
                Err(self.misuse("domain", message))
            }
        }
    }
}

/// The rules of a domain that is not open yet, as clients see them.
fn policies(domain: &DomainConfig) -> Result<Vec<Policy>> {
    let scales = domain.rules.iter().enumerate();
    let scales = scales.map(|(i, rule)| rule.scale().map_err(|fault| domain.fault(i, fault)));
    let scales = scales.collect::<Result<Vec<_>>>()?;
    let names: Vec<String> = domain.rule_names().collect();
    let rules = names
        .iter()
        .zip(&scales)
        .map(|(name, scale)| (name.as_str(), scale.burst(), Duration::from_nanos(scale.fill_ns())));
    Ok(Policy::all(&domain.name, rules))
}

/// Checks that a fixed cost can pass without debt.
fn check_cost(given: &GivenOptions<'_>, options: &Options, policies: &[Policy]) -> Result<()> {
    let least = policies.iter().map(|policy| policy.quota).min();
    match (options.cost, least) {
        (Cost::Units(units), Some(least)) if units > least => {
            let message = format!("must be at most {least}, the burst, got {units}");
            Err(given.misuse("cost", message))
        }
        _ => Ok(()),
    }
}

fn collision(name: &str, joined: &str, renamed: bool) -> String {
    match renamed {
        true => format!(
            "another middleware of this application counts under domain {name:?} by other rules, so \
             this one counts under {joined:?}: give each a name, such as domain \"login\""
        ),
        false => format!(
            "another middleware of this application counts under domain {name:?} by other rules, \
             and they will disturb each other: give one of them another domain"
        ),
    }
}

#[cfg(feature = "config")]
fn from_file(path: &str) -> Result<Config> {
    Config::from_file(path).map_err(|error| error.in_file(path))
}

#[cfg(not(feature = "config"))]
fn from_file(path: &str) -> Result<Config> {
    let message =
        format!("{path} cannot be read: this build reads no files (cargo feature config)");
    Err(Error::new(crate::ErrorKind::File, message))
}
