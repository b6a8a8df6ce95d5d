//! One middleware, or one limit of a route: what it decides about requests.
//!
//! An adapter first matches methods and routes, then asks [`Middleware::is_exempt`], then calls the
//! application's functions `skip`, `tag` and `cost`, and then [`Middleware::decide`]. If the decision
//! says so, it waits, and calls [`Middleware::end_delay`]. It writes [`Middleware::fields`] into every
//! response and [`Middleware::refusal`] as the response to a refusal, and calls
//! [`Middleware::finish`] when the status is known. Nothing here waits, and whatever goes wrong lets
//! the request pass.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use super::body::Body;
use super::counts::{Counters, Counts};
use super::delayed;
use super::fields::{Field, Headers, retry_after, unix_seconds};
use super::options::{Cost, Options};
use super::request::{Action, HttpDecision, Refusal, Request};
use super::shared::SharedThrottle;
use super::warnings::{FAILED, Warning, Warnings};
use crate::error::Result;
use crate::limit::decision::{CheckOptions, Decision};
use crate::{Domain, Throttle};

/// A middleware, or a limit of a route.
#[derive(Debug)]
pub struct Middleware {
    pub(super) options: Options,
    source: Source,
    /// Set by the first request.
    domain: OnceLock<Domain>,
    headers: Headers,
    pub(super) counters: Counters,
    pub(super) warnings: Warnings,
    /// How many requests `inspect` has seen.
    pub(super) inspected: AtomicU32,
    is_closed: AtomicBool,
    unix_ms: Option<fn() -> u64>,
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
    pub(super) fn of(
        options: Options,
        source: Source,
        headers: Headers,
        unix_ms: Option<fn() -> u64>,
    ) -> Middleware {
        if !options.max_delay.is_zero() || !options.refusal_delay.is_zero() {
            delayed::watch_forks();
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
            unix_ms,
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

    /// The counts of this process.
    pub fn counts(&self) -> Counts {
        self.counters.get()
    }

    /// The warnings since the last call. Cheap if there are none: to be called after every request.
    pub fn take_warnings(&self) -> Vec<Warning> {
        self.warnings.take()
    }

    /// Whether there are warnings for [`Middleware::take_warnings`].
    pub fn has_warnings(&self) -> bool {
        self.warnings.has_pending()
    }

    /// Counts an error of the adapter or the application, such as of the function `tag`.
    pub fn count_failure(&self) {
        self.counters.failed.add_one();
    }

    /// Decides about a request; `None`: it passes without a decision.
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
        let action = self.act(&decision, has_place, request.can_delay);
        if matches!(action, Action::Refuse(_)) {
            self.warn_of_earlier_process(&tag);
        }
        let taken = decision.granted;
        Some(HttpDecision { action, decision, tag, taken })
    }

    /// Ends the delay of a request or of a refusal: frees its place, and, if the client left
    /// before its turn, gives back what it took.
    pub fn end_delay(&self, tag: &[u8], taken: u64, is_gone: bool) {
        delayed::leave();
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
        self.headers.fields(decision, || match self.unix_ms {
            Some(unix_ms) => unix_ms().div_ceil(1000),
            None => unix_seconds(self.domain.get()),
        })
    }

    /// The response to a refused request, with the header fields of its decision. `body` replaces
    /// the body of the options; it is the result of the option `body` if that is a function.
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
        ];
        if self.options.retry_after {
            fields.push(("Retry-After", Cow::Owned(retry_after.to_string())));
        }
        fields.extend(self.fields(decision));
        Refusal { status, fields, body }
    }

    /// Checks, and says whether the request has a place among the delayed ones.
    fn check(&self, request: &Request<'_>, tag: &[u8]) -> Result<(Decision, bool)> {
        let Options { cost, max_delay, max_delayed, .. } = self.options;
        let fixed = match cost {
            Cost::Units(units) => units,
            Cost::Function => 1,
        };
        let domain = self.domain()?;
        let check = CheckOptions::cost(request.cost.unwrap_or(fixed)).allow_debt(true);
        if !self.may_delay() || !request.can_delay || !delayed::enter(max_delayed) {
            return Ok((domain.check_with(tag, check)?, false));
        }
        let checked = domain.check_with(tag, check.max_delay(max_delay));
        let waits = checked.as_ref().is_ok_and(|decision| !decision.delay.is_zero());
        if !waits {
            delayed::leave();
        }
        Ok((checked?, waits))
    }

    /// Counts a decision, and says what to do.
    fn act(&self, decision: &Decision, has_place: bool, can_delay: bool) -> Action {
        let Options { dry_run, refusal_delay, max_delayed, .. } = self.options;
        let was_spared = decision.dry_run && (decision.rule.is_some() || self.may_delay());
        if decision.rule.is_some() && !decision.allowed && !dry_run {
            self.counters.refused.add_one();
            let is_delayed = !refusal_delay.is_zero() && can_delay && delayed::enter(max_delayed);
            return Action::Refuse(if is_delayed { refusal_delay } else { Duration::ZERO });
        }
        if decision.rule.is_some() || was_spared {
            self.counters.dry_run.add_one();
        } else {
            self.counters.passed.add_one();
        }
        if has_place {
            self.counters.delayed.add_one();
            return Action::Delay(decision.delay);
        }
        Action::Pass
    }

    fn may_delay(&self) -> bool {
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

    fn warn_of_table(&self, shared: &SharedThrottle) {
        if let Some(Warning { code, message }) = shared.take_warning() {
            if code == FAILED {
                self.counters.failed.add_one();
            }
            self.warnings.add(code, "table", message);
        }
    }

    /// Named tables keep their buckets when a development server or a test suite restarts.
    fn warn_of_earlier_process(&self, tag: &[u8]) {
        if let Some(message) =
            self.domain.get().and_then(|domain| domain.earlier_process_warning(tag))
        {
            self.warnings.add("DTHROTTLE_EARLIER_PROCESS", "earlier", once(message));
        }
    }

    pub(super) fn warn(&self, code: &'static str, message: String) {
        self.warnings.add(code, code, message);
    }
}

/// The text of a warning that is given once for its cause.
pub(super) fn once(message: String) -> String {
    format!("{message}; this is reported once, and counted")
}
