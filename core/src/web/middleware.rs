//! One middleware, or one limit of a route: what it decides about requests.
//!
//! An adapter first matches methods and routes, then asks [`Middleware::is_exempt`], then calls the
//! application's functions `skip`, `tag` and `cost`, and then [`Middleware::decide`]. It waits if
//! told so, and calls [`Middleware::end_hold`]. It writes [`Middleware::fields`] into every response
//! and [`Middleware::refusal`] as the response to a refusal, and calls [`Middleware::finish`] when the
//! status is known. Nothing here waits, and whatever goes wrong lets the request pass.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use super::body::Body;
use super::counts::{Counters, Counts};
use super::fields::{Field, Headers, retry_after, unix_seconds};
use super::held;
use super::names::spell;
use super::options::{Cost, Options, TagSource};
use super::shared::SharedThrottle;
use super::warnings::{FAILED, Warning, Warnings};
use crate::error::Result;
use crate::limit::decision::{Ask, Decision};
use crate::{Domain, Throttle};

/// How many requests are searched for signs of misuse: those show in any request, or never.
const INSPECTED: u32 = 100;

/// Begins the tag of a client that is counted by address because it has no usable tag. No text in
/// UTF-8 contains the last byte, so no client can choose such a tag.
pub const BY_ADDRESS: &[u8] = b"address\xff";

/// What an adapter knows of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// The address at the other end of the connection, as text.
    pub peer: Option<&'a str>,
    /// The client's address as the framework finds it by its own rules. Used if the application
    /// did not say which proxies to trust; `None`: the peer.
    pub client: Option<&'a str>,
    /// The lines of `X-Forwarded-For`, in their order.
    pub forwarded: &'a [&'a str],
    /// What the option `tag` gave.
    pub tag: Tag<'a>,
    /// What the option `cost` gave; `None`: the fixed cost, or 1.
    pub cost: Option<u64>,
    /// Tags of different scopes are different clients: the name of a route.
    pub scope: &'a str,
    /// Whether the server can serve other requests while it holds this one.
    pub can_wait: bool,
    /// Whether the client has left already, so that its address may be unknown.
    pub is_gone: bool,
}

/// What the option `tag` gave for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tag<'a> {
    /// The client's address is the tag.
    #[default]
    Address,
    /// A tag. An empty one is unusable.
    Value(&'a [u8]),
    /// The header that has the tag is missing, or there twice.
    Missing,
    /// A value that cannot be a tag, by the name of its type.
    Unusable(&'a str),
    /// The function failed, which the adapter has reported.
    Failed,
}

/// What to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Let it pass.
    Pass,
    /// Hold it for this time, call [`Middleware::end_hold`], and let it pass.
    Hold(Duration),
    /// Refuse it. If the time is not zero: hold it first, and call [`Middleware::end_hold`].
    Refuse(Duration),
}

/// The decision about a request.
#[derive(Clone, Debug)]
pub struct HttpDecision {
    /// What to do.
    pub action: Action,
    /// The throttle's decision.
    pub decision: Decision,
    /// Who was counted.
    pub tag: Vec<u8>,
    /// Units that were taken, and that a refund gives back.
    pub taken: u64,
}

/// The response to a refused request.
#[derive(Clone, Debug)]
pub struct Refusal<'a> {
    /// The status.
    pub status: u16,
    /// The content type, and all other fields.
    pub fields: Vec<Field<'a>>,
    /// The content.
    pub body: Cow<'a, [u8]>,
}

/// A middleware, or a limit of a route.
#[derive(Debug)]
pub struct Middleware {
    options: Options,
    source: Source,
    /// Set by the first request.
    domain: OnceLock<Domain>,
    headers: Headers,
    counters: Counters,
    warnings: Warnings,
    inspected: AtomicU32,
    is_closed: AtomicBool,
}

/// Where the domain of a middleware comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// The application's own throttle.
    Given(Domain),
    /// A throttle made for middleware, and the domain's name in it.
    Shared(SharedThrottle, String),
}

impl Middleware {
    pub(super) fn of(options: Options, source: Source, headers: Headers) -> Middleware {
        if !options.max_delay.is_zero() || !options.refusal_delay.is_zero() {
            held::watch_forks();
        }
        Middleware {
            options,
            source,
            headers,
            domain: OnceLock::new(),
            counters: Counters::default(),
            warnings: Warnings::default(),
            inspected: AtomicU32::new(0),
            is_closed: AtomicBool::new(false),
        }
    }

    /// The checked options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The header fields' writer.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// The name of the domain that requests are counted in.
    pub fn domain_name(&self) -> &str {
        match &self.source {
            Source::Given(domain) => domain.name(),
            Source::Shared(_, name) => name,
        }
    }

    /// The name of the table, if it was made for middleware and has one.
    pub fn table_name(&self) -> Option<String> {
        match &self.source {
            Source::Given(_) => None,
            Source::Shared(shared, _) => shared.table_name(),
        }
    }

    /// The throttle that this middleware shares with others; `None`: it was given one.
    pub fn shared(&self) -> Option<&SharedThrottle> {
        match &self.source {
            Source::Given(_) => None,
            Source::Shared(shared, _) => Some(shared),
        }
    }

    /// Opens the throttle, so that an unusable table is an error now and not at a request.
    pub fn open(&self) -> Result<Option<Throttle>> {
        let Source::Shared(shared, _) = &self.source else { return Ok(None) };
        let throttle = shared.open()?;
        self.warn_of_table(shared);
        Ok(Some(throttle))
    }

    /// The domain that requests are counted in. From the first call on it stays the same.
    pub fn domain(&self) -> Result<&Domain> {
        if let Some(domain) = self.domain.get() {
            return Ok(domain);
        }
        let domain = match &self.source {
            Source::Given(domain) => domain.clone(),
            Source::Shared(shared, name) => {
                let domain = shared.domain(name)?;
                self.warn_of_table(shared);
                domain
            }
        };
        Ok(self.domain.get_or_init(|| domain))
    }

    /// Lets all requests pass from now on. The throttle ends with its last middleware.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// What was counted in this process.
    pub fn counts(&self) -> Counts {
        self.counters.get()
    }

    /// The warnings since the last call. Cheap if there are none: to be called after every request.
    pub fn take_warnings(&self) -> Vec<Warning> {
        self.warnings.take()
    }

    /// Whether [`Middleware::take_warnings`] has something to give.
    pub fn has_warnings(&self) -> bool {
        self.warnings.has_pending()
    }

    /// Counts an error of the adapter or the application, such as of the function `tag`.
    pub fn count_failure(&self) {
        self.counters.failed.add_one();
    }

    /// Whether the client of a request is exempt by its address. Only needed if there are
    /// exempt networks.
    pub fn is_exempt(&self, request: &Request<'_>) -> bool {
        !self.options.exempt.is_empty()
            && self.address(request).is_some_and(|found| self.options.exempt.contains(found))
    }

    /// Decides about a request; `None`: it passes, and nothing is to be said about it.
    pub fn decide(&self, request: &Request<'_>) -> Option<HttpDecision> {
        if self.is_closed.load(Ordering::Relaxed) {
            return None;
        }
        self.inspect(request);
        let tag = self.tag(request)?;
        if self.options.exempt_tags.contains(&tag) {
            return None;
        }
        let tag = match request.scope {
            "" => tag,
            scope => [scope.as_bytes(), b"\0", &tag].concat(),
        };
        let checked = self.check(request, &tag);
        let (decision, has_place) = match checked {
            Ok(checked) => checked,
            Err(error) => {
                self.counters.failed.add_one();
                let message = format!("check failed: {error}");
                self.warnings.add(FAILED, "check", once(message));
                return None;
            }
        };
        let action = self.act(&decision, has_place, request.can_wait);
        let taken = decision.granted;
        Some(HttpDecision { action, decision, tag, taken })
    }

    /// Ends the holding of a request or of a refusal: frees its place, and, if the client left
    /// before its turn, gives back what it took.
    pub fn end_hold(&self, tag: &[u8], taken: u64, is_gone: bool) {
        held::leave();
        if is_gone {
            self.counters.gave_up.add_one();
            self.refund(tag, taken);
        }
    }

    /// To be called when the response has ended: gives back what the request took, if the options
    /// say so.
    pub fn finish(&self, tag: &[u8], taken: u64, is_success: bool) {
        let refunds =
            if is_success { self.options.refund_successful } else { self.options.refund_failed };
        if refunds {
            self.refund(tag, taken);
        }
    }

    /// Whether [`Middleware::finish`] has to be called.
    pub fn refunds(&self) -> bool {
        self.options.refund_failed || self.options.refund_successful
    }

    /// The header fields for a decision.
    pub fn fields(&self, decision: &Decision) -> Vec<Field<'_>> {
        self.headers.fields(decision, || unix_seconds(self.domain.get()))
    }

    /// The response to a refused request, with the header fields of its decision. `body` replaces
    /// that of the options, where it is a function.
    pub fn refusal<'a>(&'a self, decision: &Decision, body: Option<&'a Body>) -> Refusal<'a> {
        let retry_after = retry_after(decision);
        let policy = decision.rule.and_then(|index| self.headers.policies().get(index));
        let policy = policy.map(|policy| policy.name.as_str());
        let status = self.options.status;
        let body = body.unwrap_or(&self.options.body);
        let (kind, body) = body.content(status, policy, retry_after);
        let mut fields: Vec<Field<'a>> = vec![
            ("Content-Type", Cow::Borrowed(kind)),
            ("Content-Length", Cow::Owned(body.len().to_string())),
            ("Retry-After", Cow::Owned(retry_after.to_string())),
        ];
        fields.extend(self.fields(decision));
        Refusal { status, fields, body }
    }

    /// Fills the buckets of a tag; and, if it is an address in any spelling, those of the client
    /// that is counted by it.
    pub fn reset(&self, tag: &[u8]) -> Result<()> {
        let domain = self.domain()?;
        domain.reset(tag)?;
        let text = std::str::from_utf8(tag).ok();
        if let Some(address) = text.and_then(super::address::parse_address) {
            let address = self.options.address.tag(address);
            match self.options.tag {
                TagSource::Address => domain.reset(address)?,
                _ => domain.reset([BY_ADDRESS, address.as_ref()].concat())?,
            }
        }
        Ok(())
    }

    // The parts of a decision.

    /// The client's address, by the application's rules or else by the framework's.
    fn address(&self, request: &Request<'_>) -> Option<IpAddr> {
        let address = &self.options.address;
        if self.options.trusts {
            return address.find(request.peer, request.forwarded);
        }
        let client = request.client.and_then(super::address::parse_address);
        // What a framework took for an address may be none: then its proxy answers for it.
        client.or_else(|| request.peer.and_then(super::address::parse_address))
    }

    /// The tag of a request; `None`: the request passes.
    fn tag(&self, request: &Request<'_>) -> Option<Vec<u8>> {
        let proxies = spell("trusted_proxies", self.options.names);
        match request.tag {
            Tag::Value(tag) if !tag.is_empty() => return Some(tag.to_vec()),
            Tag::Address => {
                if let Some(address) = self.address(request) {
                    return Some(self.options.address.tag(address).as_ref().to_vec());
                }
                // To leave early must not be free.
                if !request.is_gone {
                    self.counters.untagged.add_one();
                    let message = format!(
                        "the address of a client is unknown, and its requests pass (behind a proxy \
                         on a Unix socket, set {proxies})"
                    );
                    self.warnings.add("DTHROTTLE_NO_TAG", "address", once(message));
                    return None;
                }
            }
            Tag::Missing => {}
            Tag::Failed => self.counters.untagged.add_one(),
            Tag::Value(_) => self.unusable("empty text"),
            Tag::Unusable(kind) => self.unusable(kind),
        }
        let mut tag = BY_ADDRESS.to_vec();
        match self.address(request) {
            Some(address) => tag.extend_from_slice(self.options.address.tag(address).as_ref()),
            // To let these requests pass would let clients choose to pass.
            None if !request.is_gone => {
                let message = format!(
                    "clients without a tag and a known address are counted together (behind a \
                     proxy on a Unix socket, set {proxies})"
                );
                self.warnings.add("DTHROTTLE_NO_TAG", "together", once(message));
            }
            None => {}
        }
        Some(tag)
    }

    fn unusable(&self, kind: &str) {
        self.counters.untagged.add_one();
        let message = format!(
            "tag must return text (not empty, valid Unicode), bytes or a whole number, got {kind}; \
             the client's address is counted"
        );
        self.warnings.add("DTHROTTLE_NO_TAG", "tag", once(message));
    }

    /// Checks, and says whether the request has a place among the held ones.
    fn check(&self, request: &Request<'_>, tag: &[u8]) -> Result<(Decision, bool)> {
        let Options { cost, max_delay, max_held, .. } = self.options;
        let fixed = match cost {
            Cost::Units(units) => units,
            Cost::Function => 1,
        };
        let domain = self.domain()?;
        let ask = Ask::cost(request.cost.unwrap_or(fixed)).allow_debt(true);
        if !self.may_hold() || !request.can_wait || !held::enter(max_held) {
            return Ok((domain.check_with(tag, ask)?, false));
        }
        let checked = domain.check_with(tag, ask.max_wait(max_delay));
        let waits = checked.as_ref().is_ok_and(|decision| !decision.wait.is_zero());
        if !waits {
            held::leave();
        }
        Ok((checked?, waits))
    }

    /// Counts a decision, and says what to do.
    fn act(&self, decision: &Decision, has_place: bool, can_wait: bool) -> Action {
        let Options { dry_run, refusal_delay, max_held, .. } = self.options;
        let was_spared = decision.dry_run && (decision.rule.is_some() || self.may_hold());
        if decision.rule.is_some() && !decision.allowed && !dry_run {
            self.counters.refused.add_one();
            let holds = !refusal_delay.is_zero() && can_wait && held::enter(max_held);
            return Action::Refuse(if holds { refusal_delay } else { Duration::ZERO });
        }
        if decision.rule.is_some() || was_spared {
            self.counters.dry_run.add_one();
        } else {
            self.counters.passed.add_one();
        }
        if has_place {
            self.counters.delayed.add_one();
            return Action::Hold(decision.wait);
        }
        Action::Pass
    }

    fn may_hold(&self) -> bool {
        !self.options.max_delay.is_zero() && !self.options.dry_run
    }

    fn refund(&self, tag: &[u8], taken: u64) {
        let refunded = match self.is_closed.load(Ordering::Relaxed) || taken == 0 {
            true => Ok(()),
            false => self.domain().and_then(|domain| domain.refund(tag, taken)),
        };
        if let Err(error) = refunded {
            self.counters.failed.add_one();
            self.warnings.add(FAILED, "refund", once(format!("refund failed: {error}")));
        }
    }

    /// Looks for signs of misuse in the first requests.
    fn inspect(&self, request: &Request<'_>) {
        // Relaxed: it need not be exact.
        if self.inspected.load(Ordering::Relaxed) >= INSPECTED {
            return;
        }
        self.inspected.fetch_add(1, Ordering::Relaxed);
        if self.options.tag == TagSource::Function {
            if let Tag::Value(tag) = request.tag
                && std::str::from_utf8(tag).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
            {
                let message = "the tag is an IPv6 address as text, and a client has many of them: \
                               use the client address of dthrottle, or leave the tag out";
                self.warnings.add("DTHROTTLE_IPV6_TAG", "ipv6", message);
            }
        } else if !self.options.trusts && !request.forwarded.is_empty() {
            let peer = request.peer.and_then(super::address::parse_address);
            let is_framework = request.client.is_some() && request.client != request.peer;
            if !is_framework && peer.is_none_or(is_internal) {
                let message = format!(
                    "a request has X-Forwarded-For, which is not read because no proxy is trusted: \
                     behind a proxy all clients are one; set {}, such as [\"10.0.0.0/8\"]",
                    spell("trusted_proxies", self.options.names)
                );
                self.warnings.add("DTHROTTLE_FORWARDED", "forwarded", message);
            }
        }
    }

    fn warn_of_table(&self, shared: &SharedThrottle) {
        if let Some(Warning { code, message }) = shared.take_warning() {
            if code == FAILED {
                self.counters.failed.add_one();
            }
            self.warnings.add(code, "table", message);
        }
    }

    pub(super) fn warn(&self, code: &'static str, message: String) {
        self.warnings.add(code, code, message);
    }
}

fn once(message: String) -> String {
    format!("{message}; this is reported once, and counted")
}

/// Whether an address is one of proxies, but hardly of a client.
fn is_internal(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let is_carrier = v4.octets()[0] == 100 && v4.octets()[1] & 0xC0 == 64;
            v4.is_private() || v4.is_loopback() || is_carrier
        }
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}
