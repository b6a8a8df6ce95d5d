//! The options of HTTP middleware: their names in each language, and hints for names from other
//! libraries.

use crate::config::{ConfigNode, Entry, Names, Value, edit_distance};
use crate::error::{Error, Result};

/// The part of the program that reads an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OptionKind {
    /// This module.
    Value,
    /// The adapter, which calls the value: a function of the application.
    Function,
    /// The adapter: an object of the host language.
    Host,
}

use OptionKind::{Function, Host, Value as Read};

struct Key {
    snake: &'static str,
    camel: &'static str,
    kind: OptionKind,
    /// Whether only JavaScript has the option.
    only_camel: bool,
}

const fn key(snake: &'static str, camel: &'static str, kind: OptionKind, only_camel: bool) -> Key {
    Key { snake, camel, kind, only_camel }
}

/// Every option. The first ones describe the throttle.
#[rustfmt::skip]
const KEYS: &[Key] = &[
    key("throttle", "throttle", Host, false),
    key("file", "file", Read, false),
    key("rate", "rate", Read, false),
    key("burst", "burst", Read, false),
    key("charge_refused", "chargeRefused", Read, false),
    key("rules", "rules", Read, false),
    key("domains", "domains", Read, false),
    key("cluster", "cluster", Read, false),
    key("clock", "clock", Host, false),
    key("window", "windowMs", Read, true),
    key("limit", "limit", Read, true),
    key("max", "max", Read, true),
    key("table", "table", Read, false),
    key("domain", "domain", Read, false),
    key("tag", "tag", Read, false),
    key("key_generator", "keyGenerator", Function, true),
    key("cost", "cost", Read, false),
    key("methods", "methods", Read, false),
    key("routes", "routes", Read, false),
    key("allow", "allow", Read, false),
    key("skip", "skip", Function, false),
    key("skip_failed_requests", "skipFailedRequests", Read, false),
    key("skip_successful_requests", "skipSuccessfulRequests", Read, false),
    key("request_was_successful", "requestWasSuccessful", Function, true),
    key("dry_run", "dryRun", Read, false),
    key("status", "status", Read, false),
    key("body", "body", Read, false),
    key("handler", "handler", Function, true),
    key("on_refused", "onRefused", Function, false),
    key("headers", "headers", Read, false),
    key("legacy_headers", "legacyHeaders", Read, false),
    key("retry_after", "retryAfter", Read, false),
    key("request_property_name", "requestPropertyName", Host, true),
    key("max_delay", "maxDelayMs", Read, false),
    key("max_delayed", "maxDelayed", Read, false),
    key("throttle_milliseconds", "throttleMilliseconds", Read, false),
    key("trusted_proxies", "trustedProxies", Read, false),
    key("ipv6_prefix", "ipv6Prefix", Read, false),
    key("validate", "validate", Host, true),
];

/// Names of options in other libraries, in lower case and without `_`, and our name for them.
#[rustfmt::skip]
const OTHER_LIBRARIES: &[(&str, &str)] = &[
    ("allowlist", "allow"), ("whitelist", "allow"), ("exemptwhen", "skip"), ("requestfilter", "skip"),
    ("key", "tag"), ("keyfunc", "tag"), ("keygenerator", "tag"), ("identifier", "tag"), ("by", "tag"),
    ("method", "methods"), ("route", "routes"), ("path", "routes"), ("paths", "routes"),
    ("weight", "cost"), ("points", "limit"), ("duration", "window"), ("timewindow", "window"),
    ("scope", "domain"), ("group", "domain"), ("groupid", "domain"), ("name", "domain"),
    ("prefix", "domain"), ("keyprefix", "domain"), ("namespace", "table"), ("store", "table"),
    ("storageuri", "table"), ("redis", "cluster"), ("status", "status"), ("statuscode", "status"),
    ("errormessage", "body"), ("message", "body"), ("body", "body"), ("errorresponsebuilder", "body"),
    ("handler", "body"), ("onbreach", "on_refused"), ("onlimitreached", "on_refused"),
    ("onexceeded", "on_refused"), ("headers", "headers"), ("headersenabled", "headers"),
    ("standardheaders", "headers"), ("headerretryafter", "retry_after"), ("delay", "max_delay"), ("delayms", "max_delay"),
    ("maxdelay", "max_delay"), ("maxwait", "max_delay"), ("maxwaitms", "max_delay"),
    ("timeout", "max_delay"), ("execevenly", "max_delay"), ("trusted", "trusted_proxies"),
    ("trustproxy", "trusted_proxies"), ("proxies", "trusted_proxies"),
    ("numproxies", "trusted_proxies"), ("ipv6mask", "ipv6_prefix"), ("ipv6subnet", "ipv6_prefix"),
    ("ipv6prefix", "ipv6_prefix"), ("limit", "rate"), ("max", "rate"),
];

/// Names of options in other libraries that we do not have, and what to do instead.
const ADVICE: &[(&str, &str)] =
    &[("passonstoreerror", "remove it, because requests always pass when the throttle fails")];

/// The options that the user gave, by their names in this crate.
pub(super) struct GivenOptions<'a> {
    pub(super) names: Names,
    entries: Vec<(&'static Key, &'a Entry)>,
}

impl<'a> GivenOptions<'a> {
    /// Checks that every name is known. Ignores options whose value is `None` or `null`.
    pub(super) fn read(root: &'a ConfigNode, names: Names) -> Result<GivenOptions<'a>> {
        let Value::Table(entries) = &root.value else {
            return Err(Error::config("options", format!("must be a table, got {}", root.value)));
        };
        let mut given = GivenOptions { names, entries: Vec::new() };
        for entry in entries {
            let found = KEYS.iter().find(|key| key.is_in(names) && key.spelled(names) == entry.key);
            let key = found.ok_or_else(|| unknown(entry, names))?;
            if !is_none(&entry.node.value) {
                given.entries.push((key, entry));
            }
        }
        for (key, entry) in &given.entries {
            if key.kind == Function && entry.node.value != Value::Function {
                return Err(wrong(names, entry, "a function"));
            }
        }
        Ok(given)
    }

    pub(super) fn get(&self, snake: &str) -> Option<&'a Entry> {
        self.entries.iter().find(|(key, _)| key.snake == snake).map(|(_, entry)| *entry)
    }

    pub(super) fn has(&self, snake: &str) -> bool {
        self.get(snake).is_some()
    }

    /// Returns the first of these options that was given.
    pub(super) fn first(&self, snakes: &[&str]) -> Option<&'a Entry> {
        snakes.iter().find_map(|snake| self.get(snake))
    }

    /// Returns the name of an option in the user's language.
    pub(super) fn spell(&self, snake: &'static str) -> &'static str {
        spell(snake, self.names)
    }

    /// Returns the error about an option whose value is not `expected`.
    pub(super) fn wrong(&self, entry: &Entry, expected: impl std::fmt::Display) -> Error {
        wrong(self.names, entry, expected)
    }

    /// Returns an error about an option that does not mention its value.
    pub(super) fn misuse(&self, snake: &'static str, message: impl Into<String>) -> Error {
        let line = self.get(snake).and_then(|entry| entry.line);
        Error::config(self.spell(snake), message).at_line(line)
    }
}

impl Key {
    fn is_in(&self, names: Names) -> bool {
        !self.only_camel || names == Names::Camel
    }

    fn spelled(&self, names: Names) -> &'static str {
        match names {
            Names::Snake => self.snake,
            Names::Camel => self.camel,
        }
    }
}

/// Returns the name of an option in a language.
pub(super) fn spell(snake: &'static str, names: Names) -> &'static str {
    KEYS.iter().find(|key| key.snake == snake).map_or(snake, |key| key.spelled(names))
}

/// Returns the names of all options in a language.
pub fn option_names(names: Names) -> Vec<&'static str> {
    KEYS.iter().filter(|key| key.is_in(names)).map(|key| key.spelled(names)).collect()
}

fn wrong(names: Names, entry: &Entry, expected: impl std::fmt::Display) -> Error {
    let shown = match (&entry.node.value, names) {
        (Value::Bool(value), Names::Snake) if entry.line.is_none() => {
            if *value { "True" } else { "False" }.to_string()
        }
        (value, _) => value.to_string(),
    };
    let message = format!("must be {expected}, got {shown}");
    Error::config(entry.key.clone(), message).at_line(entry.node.line)
}

fn unknown(entry: &Entry, names: Names) -> Error {
    let plain: String =
        entry.key.chars().filter(|c| *c != '_').take(65).collect::<String>().to_lowercase();
    let advice = ADVICE.iter().find(|(name, _)| *name == plain);
    let available = |snake: &str| KEYS.iter().any(|key| key.snake == snake && key.is_in(names));
    let known = OTHER_LIBRARIES.iter().find(|(name, snake)| *name == plain && available(snake));
    let hint = match (advice, known) {
        (Some((_, advice)), _) => (*advice).to_string(),
        (None, Some((_, snake))) => format!("did you mean `{}`?", spell(snake, names)),
        (None, None) => nearest(&entry.key, &option_names(names)),
    };
    Error::config(entry.key.clone(), format!("is an unknown option; {hint}")).at_line(entry.line)
}

/// Returns a hint for an unknown word: the most similar known word, or all known words.
///
/// ```
/// use dthrottle::web::nearest;
///
/// assert_eq!(nearest("bust", &["rate", "burst"]), "did you mean `burst`?");
/// assert_eq!(nearest("x", &["rate", "burst"]), "the known names are rate, burst");
/// ```
pub fn nearest(word: &str, known: &[&str]) -> String {
    let plain: String = word.chars().take(64).collect::<String>().to_lowercase();
    // Up to a third of the letters may differ.
    let most = (plain.chars().count() / 3).max(1);
    let near = known.iter().map(|name| (edit_distance(&name.to_lowercase(), &plain), name)).min();
    match near {
        Some((distance, name)) if distance <= most => format!("did you mean `{name}`?"),
        _ => format!("the known names are {}", known.join(", ")),
    }
}

fn is_none(value: &Value) -> bool {
    matches!(value, Value::Other(kind) if matches!(kind.as_str(), "None" | "null" | "undefined"))
}
