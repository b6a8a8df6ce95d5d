//! The options of one middleware or route limit. They are read and checked when it is created.

use std::collections::HashSet;
use std::time::Duration;

use super::address::{ClientAddress, Trusted};
use super::body::Body;
use super::fields::HeaderFormat;
use super::names::{GivenOptions, nearest};
use super::networks::Networks;
use crate::config::{ConfigNode, Entry, Names, Value};
use crate::convert::MAX_FLOAT_COST;
use crate::error::{Error, Result};

/// The longest `max_delay`, in seconds.
const MAX_DELAY_S: f64 = 3600.0;
const MAX_DELAYED_LIMIT: f64 = 1_000_000.0;
const DEFAULT_MAX_DELAYED: u32 = 64;
const DEFAULT_STATUS: u16 = 429;
const DEFAULT_PREFIX: u32 = 64;

/// What identifies the client of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagSource {
    /// The client's address.
    Address,
    /// A request header, by its name in lower case. Requests without it are counted by address.
    Header(String),
    /// A function of the application.
    Function,
}

/// The cost of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// The same cost for every request.
    Units(u64),
    /// A function of the application returns the cost.
    Function,
}

/// The checked options of a middleware. docs/http.md describes them.
#[derive(Clone, Debug)]
pub struct Options {
    /// What identifies a client.
    pub tag: TagSource,
    /// The cost of a request.
    pub cost: Cost,
    /// The methods of requests to throttle. `None` means all methods.
    pub methods: Option<Vec<String>>,
    /// Regular expressions for the paths to throttle. Empty means all paths.
    pub routes: Vec<String>,
    /// How the address of a client is found.
    pub address: ClientAddress,
    /// Whether the option `trusted_proxies` was given.
    pub trusts_proxies: bool,
    /// Clients that are never throttled, by address.
    pub exempt: Networks,
    pub(super) exempt_tags: HashSet<Vec<u8>>,
    /// A text in `allow` that is not a network, which is an error if tags are addresses.
    pub(super) misplaced_tag: Option<Entry>,
    /// Whether to only count refusals and let all requests pass.
    pub dry_run: bool,
    /// The HTTP status of a refusal.
    pub status: u16,
    /// The body of a refusal.
    pub body: Body,
    /// The format of the header fields of every response.
    pub headers: HeaderFormat,
    /// Whether to also write `X-RateLimit` fields.
    pub legacy_headers: bool,
    /// Whether refusals have `Retry-After`.
    pub retry_after: bool,
    /// The longest time to delay a request until its turn.
    pub max_delay: Duration,
    /// How many requests may be delayed in this process.
    pub max_delayed: u32,
    /// How long to delay a refusal.
    pub refusal_delay: Duration,
    /// Whether to refund requests whose response is an error.
    pub refund_failed: bool,
    /// Whether to refund requests whose response is not an error.
    pub refund_successful: bool,
    /// The domain's name, if the user gave one.
    pub domain: Option<String>,
    pub(super) names: Names,
}

impl Options {
    /// Reads the options from a tree of values.
    ///
    /// # Errors
    ///
    /// If an option is unknown or a value is wrong. The error names the option.
    pub fn read(root: &ConfigNode, names: Names) -> Result<Options> {
        Options::from_given(&GivenOptions::read(root, names)?)
    }

    pub(super) fn from_given(given: &GivenOptions<'_>) -> Result<Options> {
        let tag = given.tag()?;
        let (exempt, exempt_tags, misplaced_tag) = given.allow(tag == TagSource::Address)?;
        let number = |snake, most, whole| given.number(snake, 0.0, most, whole);
        // Durations are milliseconds in JavaScript and seconds elsewhere.
        let unit = if given.names == Names::Camel { 1e3 } else { 1.0 };
        let max_delay = number("max_delay", MAX_DELAY_S * unit, false)?.unwrap_or(0.0) / unit;
        let max_delayed = number("max_delayed", MAX_DELAYED_LIMIT, true)?
            .map_or(DEFAULT_MAX_DELAYED, |count| count as u32);
        let refusal_ms = number("throttle_milliseconds", MAX_DELAY_S * 1e3, false)?;
        let status = given.number("status", 400.0, 599.0, true)?;
        Ok(Options {
            tag,
            cost: given.cost()?,
            methods: given.methods()?,
            routes: given.routes()?,
            address: ClientAddress::new(given.trusted()?, given.prefix()?),
            trusts_proxies: given.has("trusted_proxies"),
            exempt,
            exempt_tags,
            misplaced_tag,
            dry_run: given.flag("dry_run")?,
            status: status.map_or(DEFAULT_STATUS, |status| status as u16),
            body: given.body()?,
            headers: given.headers()?,
            legacy_headers: given.flag("legacy_headers")?,
            retry_after: !given.has("retry_after") || given.flag("retry_after")?,
            max_delay: Duration::from_secs_f64(max_delay),
            max_delayed,
            refusal_delay: Duration::from_secs_f64(refusal_ms.unwrap_or(0.0) / 1e3),
            refund_failed: given.flag("skip_failed_requests")?,
            refund_successful: given.flag("skip_successful_requests")?,
            domain: given.text("domain")?.map(Into::into),
            names: given.names,
        })
    }

    /// Checks that every entry of `allow` identifies a client. This is separate from reading,
    /// because the options of routes may complete those of an application.
    ///
    /// # Errors
    ///
    /// If `allow` has a text that is not a network although tags are addresses.
    pub fn check_allow(&self) -> Result<()> {
        let Some(entry) = &self.misplaced_tag else { return Ok(()) };
        let tag = super::names::spell("tag", self.names);
        let message = format!(
            "must have only addresses and networks such as \"10.0.0.0/8\", because tags are \
             addresses (option `{tag}`), got {}",
            entry.node.value
        );
        Err(Error::config("allow", message).at_line(entry.line))
    }
}

impl GivenOptions<'_> {
    fn tag(&self) -> Result<TagSource> {
        if let Some(entry) = self.get("key_generator") {
            if self.has("tag") {
                let message = "must not be given together with `tag`, which means the same";
                return Err(Error::config(entry.key.clone(), message).at_line(entry.line));
            }
            return Ok(TagSource::Function);
        }
        let Some(entry) = self.get("tag") else { return Ok(TagSource::Address) };
        match &entry.node.value {
            Value::Function => return Ok(TagSource::Function),
            Value::Text(text) if text == "address" => return Ok(TagSource::Address),
            Value::Text(text) => {
                if let Some(header) = text.strip_prefix("header:").filter(|name| is_token(name)) {
                    return Ok(TagSource::Header(header.to_ascii_lowercase()));
                }
            }
            _ => {}
        }
        Err(self.wrong(entry, "a function, \"address\", or \"header:X-Api-Key\""))
    }

    fn cost(&self) -> Result<Cost> {
        let Some(entry) = self.get("cost") else { return Ok(Cost::Units(1)) };
        match entry.node.value {
            Value::Function => Ok(Cost::Function),
            Value::Number(units)
                if units.fract() == 0.0 && (0.0..=MAX_FLOAT_COST).contains(&units) =>
            {
                Ok(Cost::Units(units as u64))
            }
            _ => Err(self.wrong(entry, "a whole number, 0 or more, or a function")),
        }
    }

    fn methods(&self) -> Result<Option<Vec<String>>> {
        let Some(entry) = self.get("methods") else { return Ok(None) };
        let mut methods = self.texts(entry, "[\"GET\", \"POST\"]")?;
        if methods.is_empty() {
            return Err(
                self.misuse("methods", "must not be empty; remove it to throttle all methods")
            );
        }
        for method in &methods {
            let is_letter = |c: char| c.is_ascii_uppercase() || c == '-';
            if !method.starts_with(|c: char| c.is_ascii_uppercase())
                || !method.chars().all(is_letter)
            {
                let expected = match method.chars().all(|c| c.is_ascii_alphabetic()) {
                    true => format!("\"{}\"", method.to_ascii_uppercase()),
                    false => "a method such as \"GET\"".into(),
                };
                let message = format!("must be {expected}, got {method:?}");
                return Err(Error::config("methods", message).at_line(entry.line));
            }
        }
        // Applications answer HEAD with their handler for GET.
        if methods.iter().any(|method| method == "GET") && !methods.iter().any(|m| m == "HEAD") {
            methods.push("HEAD".into());
        }
        Ok(Some(methods))
    }

    fn routes(&self) -> Result<Vec<String>> {
        let entry = self.get("routes");
        entry.map_or(Ok(Vec::new()), |entry| self.texts(entry, "[\"/login\", \"/api/.*\"]"))
    }

    fn allow(&self, by_address: bool) -> Result<(Networks, HashSet<Vec<u8>>, Option<Entry>)> {
        let (mut networks, mut tags, mut misplaced) = (Networks::default(), HashSet::new(), None);
        let Some(entry) = self.get("allow") else { return Ok((networks, tags, misplaced)) };
        let Value::List(nodes) = &entry.node.value else {
            let expected = match entry.node.value {
                Value::Function => "a list (a function belongs in the option `skip`)",
                _ => "a list such as [\"10.0.0.0/8\"]",
            };
            return Err(self.wrong(entry, expected));
        };
        for node in nodes {
            let item = item_of(entry, node);
            match &node.value {
                // A malformed network is an error, and not a tag.
                Value::Text(text) if looks_like_network(text) => {
                    networks.add(text).map_err(|expected| self.wrong(&item, expected))?;
                }
                Value::Text(_) if by_address => misplaced = misplaced.or(Some(item)),
                Value::Text(text) => drop(tags.insert(text.clone().into_bytes())),
                Value::Bytes(bytes) => drop(tags.insert(bytes.clone())),
                _ => {
                    let expected = "an address, a network or a tag, as text or bytes";
                    return Err(self.wrong(&item, expected));
                }
            }
        }
        Ok((networks, tags, misplaced))
    }

    fn trusted(&self) -> Result<Trusted> {
        let Some(entry) = self.get("trusted_proxies") else { return Ok(Trusted::Count(0)) };
        match &entry.node.value {
            Value::Number(count) if count.fract() == 0.0 && *count >= 0.0 => {
                Ok(Trusted::Count(*count as usize))
            }
            Value::Number(count) if *count < 0.0 => {
                Err(self.wrong(entry, "the number of proxies, 0 or more"))
            }
            Value::List(nodes) => {
                let mut networks = Networks::default();
                for node in nodes {
                    let item = item_of(entry, node);
                    let Value::Text(text) = &node.value else {
                        return Err(self.wrong(&item, "text such as \"10.0.0.0/8\""));
                    };
                    networks.add(text).map_err(|expected| self.wrong(&item, expected))?;
                }
                Ok(Trusted::Networks(networks))
            }
            _ => Err(self.wrong(entry, "the number of proxies, or a list of their networks")),
        }
    }

    fn prefix(&self) -> Result<u32> {
        match self.get("ipv6_prefix").map(|entry| (entry, &entry.node.value)) {
            None => Ok(DEFAULT_PREFIX),
            Some((_, Value::Number(bits)))
                if bits.fract() == 0.0 && (1.0..=128.0).contains(bits) =>
            {
                Ok(*bits as u32)
            }
            Some((entry, _)) => Err(self.wrong(entry, "a number of bits from 1 to 128")),
        }
    }

    fn body(&self) -> Result<Body> {
        let Some(entry) = self.get("body") else { return Ok(Body::Default) };
        Body::from_value(&entry.node.value).map_err(|expected| self.wrong(entry, expected))
    }

    fn headers(&self) -> Result<HeaderFormat> {
        let Some(entry) = self.get("headers") else { return Ok(HeaderFormat::Standard) };
        let hint = match &entry.node.value {
            Value::Bool(true) => return Ok(HeaderFormat::Standard),
            Value::Bool(false) => return Ok(HeaderFormat::None),
            Value::Text(text) => match HeaderFormat::parse(text) {
                Some(kind) => return Ok(kind),
                None => format!("; {}", nearest(text, HeaderFormat::NAMES)),
            },
            _ => String::new(),
        };
        let expected = format!("true, false, or one of {}", HeaderFormat::NAMES.join(", "));
        let message = format!("must be {expected}, got {}{hint}", entry.node.value);
        Err(Error::config(entry.key.clone(), message).at_line(entry.node.line))
    }

    pub(super) fn flag(&self, snake: &'static str) -> Result<bool> {
        match self.get(snake).map(|entry| (entry, &entry.node.value)) {
            None => Ok(false),
            Some((_, Value::Bool(flag))) => Ok(*flag),
            Some((entry, _)) => Err(self.wrong(entry, "true or false")),
        }
    }

    pub(super) fn text(&self, snake: &'static str) -> Result<Option<&str>> {
        match self.get(snake).map(|entry| (entry, &entry.node.value)) {
            None => Ok(None),
            Some((_, Value::Text(text))) if !text.is_empty() => Ok(Some(text)),
            Some((entry, _)) => Err(self.wrong(entry, "text that is not empty")),
        }
    }

    fn number(
        &self,
        snake: &'static str,
        least: f64,
        most: f64,
        whole: bool,
    ) -> Result<Option<f64>> {
        let Some(entry) = self.get(snake) else { return Ok(None) };
        match entry.node.value {
            Value::Number(number)
                if (least..=most).contains(&number) && (!whole || number.fract() == 0.0) =>
            {
                Ok(Some(number))
            }
            _ => {
                let kind = if whole { "whole number" } else { "number" };
                Err(self.wrong(entry, format!("a {kind} from {least} to {most}")))
            }
        }
    }

    /// Returns a list of texts that are not empty.
    fn texts(&self, entry: &Entry, example: &str) -> Result<Vec<String>> {
        let Value::List(nodes) = &entry.node.value else {
            return Err(self.wrong(entry, format!("a list such as {example}")));
        };
        let texts = nodes.iter().map(|node| match &node.value {
            Value::Text(text) if !text.is_empty() => Ok(text.clone()),
            _ => Err(self.wrong(&item_of(entry, node), format!("text, as in {example}"))),
        });
        texts.collect()
    }
}

/// Returns an item of a list as an entry. Errors name the list.
fn item_of(entry: &Entry, node: &ConfigNode) -> Entry {
    Entry { key: entry.key.clone(), line: entry.line, node: node.clone() }
}

/// Whether this is a valid header name (RFC 9110).
fn is_token(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+.^_`|~-".contains(&byte);
    !name.is_empty() && name.bytes().all(is_part)
}

/// Whether the user most likely meant an address or a network: numbers with dots, or hexadecimal
/// digits with two colons.
fn looks_like_network(text: &str) -> bool {
    let address = text.split('/').next().unwrap_or(text);
    let parts: Vec<&str> = address.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let is_v4 = (2..=4).contains(&parts.len()) && parts.iter().all(is_number);
    let is_v6 = address.bytes().filter(|byte| *byte == b':').count() >= 2
        && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':' || b == b'.');
    is_v4 || is_v6
}
