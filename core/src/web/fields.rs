//! The header fields that describe a decision, in the formats of several drafts.
//!
//! The standard format is draft-ietf-httpapi-ratelimit-headers, versions 08 to 11, which uses
//! structured fields (RFC 9651):
//!
//! ```text
//! RateLimit-Policy: "default";q=200;w=2
//! RateLimit: "default";r=199;t=1
//! ```
//!
//! A leaky bucket has no fixed window. `q` is the burst, and `w` the time in which an empty bucket
//! fills. `r` is the number of units left, and `t` the time until there are more.

use std::borrow::Cow;
use std::fmt::Write;
use std::time::Duration;

use crate::Domain;
use crate::clock::Clock;
use crate::limit::decision::Decision;

/// The largest integer in a structured field.
const MAX_INTEGER: u64 = 1_000_000_000_000_000 - 1;
const NS_PER_S: u128 = 1_000_000_000;

/// The name and the value of a header field.
pub type Field<'a> = (&'static str, Cow<'a, str>);

/// The format of the header fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFormat {
    /// `RateLimit-Policy` and `RateLimit` as structured fields: drafts 08 to 11.
    Standard,
    /// `RateLimit-Policy` and `RateLimit` of draft 07.
    Draft7,
    /// `RateLimit-Limit`, `-Remaining`, `-Reset` of draft 06, and `RateLimit-Policy`.
    Draft6,
    /// `X-RateLimit-Limit`, `-Remaining`, `-Reset`.
    XRateLimit,
    /// No header fields.
    None,
}

impl HeaderFormat {
    /// The names of the formats. `draft-8` is another name for `standard`.
    pub const NAMES: &[&str] =
        &["standard", "draft-8", "draft-7", "draft-6", "x-ratelimit", "none"];

    /// Returns the format with this name.
    pub fn parse(name: &str) -> Option<HeaderFormat> {
        Some(match name {
            "standard" | "draft-8" => HeaderFormat::Standard,
            "draft-7" => HeaderFormat::Draft7,
            "draft-6" => HeaderFormat::Draft6,
            "x-ratelimit" => HeaderFormat::XRateLimit,
            "none" => HeaderFormat::None,
            _ => return None,
        })
    }
}

/// Whether the values of a field from several throttles may be joined in one response.
pub fn is_list(name: &str) -> bool {
    name.eq_ignore_ascii_case(POLICY) || name.eq_ignore_ascii_case(LIMIT)
}

const POLICY: &str = "RateLimit-Policy";
const LIMIT: &str = "RateLimit";

/// A rule as the header fields show it to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The rule's name, or the domain's name if its only rule has no name.
    pub name: String,
    /// The burst, in units.
    pub quota: u64,
    /// The time in which an empty bucket fills.
    pub window: Duration,
    /// The name as a string in a structured field.
    quoted: String,
}

impl Policy {
    /// Returns the policies of a domain, from the names, bursts and windows of its rules.
    pub fn all<'a>(
        domain: &str,
        rules: impl ExactSizeIterator<Item = (&'a str, u64, Duration)>,
    ) -> Vec<Policy> {
        let is_alone = rules.len() == 1;
        let policies = rules.map(|(rule, quota, window)| {
            let name = if is_alone && rule == "rule1" { domain } else { rule };
            Policy { name: name.into(), quota, window, quoted: structured_string(name) }
        });
        policies.collect()
    }

    fn listed(&self, kind: HeaderFormat) -> String {
        let (quota, window) = (self.quota.min(MAX_INTEGER), seconds(self.window.as_nanos()).max(1));
        match kind {
            HeaderFormat::Standard => format!("{};q={quota};w={window}", self.quoted),
            _ => format!("{quota};w={window}"),
        }
    }
}

/// Writes the header fields for the rules of a domain.
#[derive(Clone, Debug)]
pub struct Headers {
    kind: HeaderFormat,
    /// Whether to also write `X-RateLimit` fields.
    legacy: bool,
    policies: Vec<Policy>,
    /// The value of `RateLimit-Policy`, which is the same for all decisions.
    policy: String,
}

impl Headers {
    /// Creates a writer for these policies.
    pub fn new(kind: HeaderFormat, legacy: bool, policies: Vec<Policy>) -> Headers {
        let listed: Vec<String> = policies.iter().map(|policy| policy.listed(kind)).collect();
        Headers { kind, legacy, policy: listed.join(", "), policies }
    }

    /// Creates a writer for the rules of an open domain.
    pub fn of_domain(kind: HeaderFormat, legacy: bool, domain: &Domain) -> Headers {
        let rules = domain.rules().iter().map(|rule| (rule.name(), rule.burst(), rule.window()));
        Headers::new(kind, legacy, Policy::all(domain.name(), rules))
    }

    /// Whether fields of several throttles may be joined in one response.
    pub fn is_list(&self) -> bool {
        self.kind == HeaderFormat::Standard
    }

    /// Returns the policies, in the order of the rules.
    pub fn policies(&self) -> &[Policy] {
        &self.policies
    }

    /// Returns the fields for a decision. `unix_s` returns the time in seconds since 1970. A domain
    /// without rules has no fields.
    pub fn fields(&self, decision: &Decision, unix_s: impl Fn() -> u64) -> Vec<Field<'_>> {
        let mut fields = Vec::new();
        let Some(policy) = decision.deciding.and_then(|index| self.policies.get(index)) else {
            return fields;
        };
        if matches!(self.kind, HeaderFormat::Standard | HeaderFormat::Draft7 | HeaderFormat::Draft6)
        {
            fields.push((POLICY, Cow::Borrowed(self.policy.as_str())));
        }
        let more = more_after(decision, policy);
        let left = decision.remaining.min(MAX_INTEGER);
        let quota = policy.quota.min(MAX_INTEGER);
        let mut push = |name, value: String| fields.push((name, Cow::Owned(value)));
        match self.kind {
            HeaderFormat::Standard => {
                let mut value = String::with_capacity(policy.quoted.len() + 40);
                value.push_str(&policy.quoted);
                let _ = write!(value, ";r={left}");
                if more > 0 {
                    let _ = write!(value, ";t={more}");
                }
                push(LIMIT, value);
            }
            HeaderFormat::Draft7 => {
                push(LIMIT, format!("limit={quota}, remaining={left}, reset={more}"));
            }
            HeaderFormat::Draft6 => {
                push("RateLimit-Limit", quota.to_string());
                push("RateLimit-Remaining", left.to_string());
                push("RateLimit-Reset", more.to_string());
            }
            HeaderFormat::XRateLimit | HeaderFormat::None => {}
        }
        if self.legacy || self.kind == HeaderFormat::XRateLimit {
            push("X-RateLimit-Limit", policy.quota.to_string());
            push("X-RateLimit-Remaining", decision.remaining.to_string());
            // By convention Unix time, and not a duration.
            push("X-RateLimit-Reset", (unix_s() + more).to_string());
        }
        fields
    }

    /// Returns the fields for a decision of `domain`, including `Retry-After` for a refusal. For
    /// servers without a [`Middleware`](super::Middleware).
    pub fn of_response(&self, domain: &Domain, decision: &Decision) -> Vec<Field<'_>> {
        let refused = (!decision.allowed).then(|| retry_after(decision).to_string());
        let refused = refused.map(|seconds| ("Retry-After", Cow::Owned(seconds)));
        let fields = self.fields(decision, || unix_seconds(Some(domain)));
        refused.into_iter().chain(fields).collect()
    }
}

/// Returns the seconds since 1970, rounded up. A manual clock is assumed to count from 1970.
pub(super) fn unix_seconds(domain: Option<&Domain>) -> u64 {
    match domain.map(|domain| domain.0.host.clock.clock()) {
        Some(Clock::Manual(clock)) => clock.now().as_nanos().div_ceil(NS_PER_S) as u64,
        _ => crate::os::clock::unix_ms().div_ceil(1000),
    }
}

/// Returns the value of `Retry-After`: the whole seconds after which the same request would pass,
/// at least 1.
pub fn retry_after(decision: &Decision) -> u64 {
    seconds(decision.retry_after.as_nanos()).clamp(1, MAX_INTEGER)
}

/// Returns the whole seconds until the bucket has more units than now, or 0 if it is full.
///
/// The missing units return one by one within `reset_after`, so the first one returns within the
/// average time of a unit.
fn more_after(decision: &Decision, policy: &Policy) -> u64 {
    if decision.rule.is_some() {
        return retry_after(decision);
    }
    let missing = i128::from(decision.limit) - i128::from(decision.balance);
    let Ok(missing @ 1..) = u128::try_from(missing) else { return 0 };
    let average = decision.reset_after.as_nanos() / missing;
    // With several rules, `reset_after` may belong to another rule.
    let unit = policy.window.as_nanos() / u128::from(policy.quota.max(1));
    seconds(average.min(unit)).clamp(1, MAX_INTEGER)
}

/// Converts to whole seconds, rounded up. A single nanosecond is a rounding error and is ignored.
fn seconds(ns: u128) -> u64 {
    u64::try_from(ns.saturating_sub(1).div_ceil(NS_PER_S)).unwrap_or(MAX_INTEGER)
}

/// Returns a string for a structured field. Bytes that are not printable ASCII are percent-encoded.
fn structured_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => {
                let _ = write!(quoted, "%{byte:02X}");
            }
        }
    }
    quoted.push('"');
    quoted
}
