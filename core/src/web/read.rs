//! Creates a middleware from its options. Its throttle belongs to the application, or is created
//! from a rate, rules or a file.

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

/// Settings that an adapter adds to the options of the user.
#[derive(Clone, Debug, Default)]
pub struct AdapterSettings<'a> {
    /// A domain of the throttle that the user gave with the option `throttle`.
    pub domain: Option<Domain>,
    /// The clock that the user gave with the option `clock`.
    pub clock: Option<Clock>,
    /// Returns Unix time in milliseconds, for hosts that move a manual clock themselves. `None`
    /// assumes that a manual clock counts from 1970.
    pub unix_ms: Option<fn() -> u64>,
    /// The key of the fingerprints, for platforms without random numbers.
    pub fingerprint_key: Option<[u64; 2]>,
    /// The default name of the table, which identifies the application.
    pub application: Option<&'a str>,
    /// A part of the default domain name, which distinguishes this middleware from others with the
    /// same methods and routes. May be empty.
    pub name_part: &'a str,
    /// Whether routes may add options to these. The adapter then calls [`Options::check_allow`].
    pub is_template: bool,
    /// The throttle to use. `None` uses one that all middlewares of the process share.
    pub within: Option<&'a SharedThrottle>,
}

#[cfg(feature = "config")]
impl Middleware {
    /// Reads the options of a middleware in TOML, for adapters without functions of the
    /// application. With `tag = "request"` the adapter sets the tag of each request. The adapter
    /// also selects methods and routes.
    ///
    /// # Errors
    ///
    /// If the text is not valid TOML, or like [`Middleware::read`].
    pub fn from_toml(text: &str, setup: AdapterSettings<'_>) -> Result<Middleware> {
        let mut root = crate::config::parse_toml(text)?;
        if let Value::Table(entries) = &mut root.value {
            for entry in entries {
                if entry.key == "tag" && entry.node.value == Value::Text("request".into()) {
                    entry.node.value = Value::Function;
                } else if entry.key == "methods" || entry.key == "routes" {
                    let message =
                        "is not supported here; select requests before calling the middleware";
                    return Err(Error::config(entry.key.clone(), message).at_line(entry.line));
                }
            }
        }
        Middleware::read(&root, Names::Snake, setup)
    }
}

impl Middleware {
    /// Creates a middleware from its options. The table is opened later, by [`Middleware::open`] or
    /// by the first request.
    ///
    /// # Errors
    ///
    /// If an option is unknown, a value is wrong, or options contradict each other.
    pub fn read(root: &ConfigNode, names: Names, setup: AdapterSettings<'_>) -> Result<Middleware> {
        let given = GivenOptions::read(root, names)?;
        let options = Options::from_given(&given)?;
        if !setup.is_template {
            options.check_allow()?;
        }
        if let Some(domain) = setup.domain {
            for option in THROTTLE_OPTIONS {
                if given.has(option) {
                    let message = "must not be given together with `throttle`; set it when you open that throttle";
                    return Err(given.misuse(option, message));
                }
            }
            let headers = Headers::of_domain(options.headers, options.legacy_headers, &domain);
            check_cost(&given, &options, headers.policies())?;
            return Ok(Middleware::new(
                options,
                Source::Application(domain),
                headers,
                setup.unix_ms,
            ));
        }
        let mut config = given.config(&setup)?;
        if setup.clock.is_none()
            && let Some(application) = setup.application
        {
            config.name_table(application, true);
        }
        let (domains, name) = given.domains(&mut config, &options, setup.name_part)?;
        let is_named = options.domain.is_some() || given.has("domains") || given.has("file");
        config.check(names)?;
        let settings = ThrottleSettings { config, clock: setup.clock, key: setup.fingerprint_key };
        let wanted = domains.iter().position(|domain| domain.name == name).unwrap_or(0);
        let rules = policies(&domains[wanted])?;
        check_cost(&given, &options, &rules)?;
        let mut domains = domains;
        domains.swap(0, wanted);
        let AddedDomains { throttle, name: used_name, collides } =
            SharedThrottle::add_domains(settings, domains.clone(), is_named, setup.within);
        let policies = match used_name == name {
            true => rules,
            false => {
                self::policies(&DomainConfig { name: used_name.clone(), ..domains.remove(0) })?
            }
        };
        let headers = Headers::new(options.headers, options.legacy_headers, policies);
        let renamed = used_name != name;
        let source = Source::Shared(throttle, used_name.clone());
        let middleware = Middleware::new(options, source, headers, setup.unix_ms);
        if collides {
            middleware.warn("DTHROTTLE_SAME_DOMAIN", collision(&name, &used_name, renamed));
        }
        if let Some(window) = given.window()? {
            let message = format!(
                "{} and limit become the rate {window:?}: a bucket that refills continuously, and not \
                 a fixed window",
                given.spell("window")
            );
            middleware.warn("DTHROTTLE_WINDOW", message);
        }
        Ok(middleware)
    }
}

impl GivenOptions<'_> {
    /// Returns the configuration of the throttle, from a file or from the options.
    fn config(&self, setup: &AdapterSettings<'_>) -> Result<Config> {
        let private =
            matches!(self.get("table").map(|entry| &entry.node.value), Some(Value::Bool(false)));
        let table = self.get("table").filter(|_| !private);
        let mut config = match self.text("file")? {
            Some(path) => {
                let others = THROTTLE_OPTIONS.iter().filter(|key| !["file", "table"].contains(key));
                for option in others {
                    if self.has(option) {
                        let message =
                            format!("must not be given together with `file`; set it in {path}");
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
            let message = "is missing; set a rate such as \"100/s\", or rules, file or throttle";
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

    /// Returns the rate that `window` and `limit` describe.
    fn window(&self) -> Result<Option<String>> {
        let Some(first) = self.first(WINDOW_OPTIONS) else { return Ok(None) };
        if let Some(max) = self.get("max").filter(|_| self.has("limit")) {
            let message = "must not be given together with `limit`, which means the same";
            return Err(Error::config(max.key.clone(), message).at_line(max.line));
        }
        let Some(limit) = self.first(&["limit", "max"]) else {
            let message =
                format!("is required with `{}`; or set a rate such as \"100/s\"", first.key);
            return Err(Error::config("limit", message));
        };
        let name = self.spell("window");
        let Some(window) = self.get("window") else {
            let message =
                format!("is required with `{}`; or set a rate such as \"100/s\"", limit.key);
            return Err(Error::config(name, message));
        };
        let whole = |entry: &Entry, expected: &str| match entry.node.value {
            Value::Number(n) if n.fract() == 0.0 && (1.0..=MAX_FLOAT_COST).contains(&n) => {
                Ok(n as u64)
            }
            _ => Err(self.wrong(entry, expected)),
        };
        let ms = whole(window, "a whole number of milliseconds, 1 or more")?;
        let most = whole(limit, "a whole number, 1 or more")?;
        for key in ["rate", "rules", "domains"] {
            if let Some(entry) = self.get(key) {
                let message =
                    format!("must not be given together with `{name}` and `{}`", limit.key);
                return Err(Error::config(entry.key.clone(), message).at_line(entry.line));
            }
        }
        Ok(Some(format!("{most} per {ms} ms")))
    }

    /// Takes the domains out of the configuration. Also returns the name of the domain to use.
    fn domains(
        &self,
        config: &mut Config,
        options: &Options,
        name_part: &str,
    ) -> Result<(Vec<DomainConfig>, String)> {
        let mut domains = std::mem::take(&mut config.domains);
        let has_several = self.has("domains") || self.has("file");
        config.domains = vec![Config::default().domains.remove(0)];
        config.domains[0].unlimited = true;
        let methods = options.methods.as_deref().unwrap_or_default();
        let name = match &options.domain {
            Some(name) => name.clone(),
            None if has_several => Config::DEFAULT.into(),
            None => label(name_part, methods, &options.routes),
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

/// Returns the policies of a domain that is not open yet.
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

/// Checks that a fixed cost fits into the burst.
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

fn collision(name: &str, used_name: &str, renamed: bool) -> String {
    match renamed {
        true => format!(
            "another middleware of this application uses domain {name:?} with other rules, so this \
             one uses {used_name:?}; name each of them, such as domain \"login\""
        ),
        false => format!(
            "another middleware of this application uses domain {name:?} with other rules, so their \
             counts will disturb each other; give one of them another domain"
        ),
    }
}

#[cfg(feature = "config")]
fn from_file(path: &str) -> Result<Config> {
    Config::from_file(path).map_err(|error| match (error.kind(), error.field()) {
        // The message has the path.
        (crate::ErrorKind::File, None) => error,
        _ => error.in_file(path),
    })
}

#[cfg(not(feature = "config"))]
fn from_file(path: &str) -> Result<Config> {
    let message =
        format!("cannot read {path}: files need the cargo feature `config` of the crate dthrottle");
    Err(Error::new(crate::ErrorKind::File, message))
}
