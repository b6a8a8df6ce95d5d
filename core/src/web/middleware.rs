//! One middleware, or one limit of a route, which decides about requests.
//!
//! No function of this module blocks. When an error occurs, the request passes.

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
///
/// An adapter handles a request in this order:
///
/// 1. Compare the methods and routes of [`Middleware::options`].
/// 2. Call [`Middleware::is_exempt`].
/// 3. Call the application's functions `skip`, `tag` and `cost`.
/// 4. Call [`Middleware::decide`].
/// 5. For [`Action::Delay`] and a delayed [`Action::Refuse`], wait, and call
///    [`Middleware::end_delay`].
/// 6. For a refusal, write [`Middleware::refusal`]. Otherwise let the request pass, and add
///    [`Middleware::fields`] to its response.
/// 7. When the status of the response is known, call [`Middleware::finish`].
///
/// ```
/// use dthrottle::config::{Entry, Names, Value};
/// use dthrottle::web::{Action, AdapterSettings, Middleware, Request};
///
/// let options = vec![
///     Entry::new("rate", Value::Text("1/minute".into())),
///     Entry::new("table", Value::Bool(false)), // count in this process only
/// ];
/// let options = Value::Table(options).into();
/// let middleware = Middleware::read(&options, Names::Snake, AdapterSettings::default())?;
/// let request = Request { peer: Some("203.0.113.7"), ..Request::default() };
///
/// let first = middleware.decide(&request).unwrap();
/// assert_eq!(first.action, Action::Pass);
/// let second = middleware.decide(&request).unwrap();
/// assert!(matches!(second.action, Action::Refuse(_)));
/// assert_eq!(middleware.refusal(&second.decision, None).status, 429);
/// # Ok::<(), dthrottle::Error>(())
/// ```
#[derive(Debug)]
pub struct Middleware {
    pub(super) options: Options,
    source: Source,
    /// Set by the first request.
    domain: OnceLock<Domain>,
    headers: Headers,
    pub(super) counters: Counters,
    pub(super) warnings: Warnings,
    /// The number of requests that `inspect` has inspected.
    pub(super) inspected: AtomicU32,
    is_closed: AtomicBool,
    unix_ms: Option<fn() -> u64>,
}

/// Where the domain of a middleware comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// The application's own throttle.
    Application(Domain),
    /// A throttle that was created for middlewares, and the name of the domain.
    Shared(SharedThrottle, String),
}

impl Middleware {
    pub(super) fn new(
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

    /// Returns the checked options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the writer of the header fields.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Returns the name of the domain that requests are charged to.
    pub fn domain_name(&self) -> &str {
        match &self.source {
            Source::Application(domain) => domain.name(),
            Source::Shared(_, name) => name,
        }
    }

    /// Returns the name of the table, if the middleware opens it and it has a name.
    pub fn table_name(&self) -> Option<String> {
        match &self.source {
            Source::Application(_) => None,
            Source::Shared(shared, _) => shared.table_name(),
        }
    }

    /// Returns the throttle that this middleware shares with others, or `None` if it uses a
    /// throttle of the application.
    pub fn shared(&self) -> Option<&SharedThrottle> {
        match &self.source {
            Source::Application(_) => None,
            Source::Shared(shared, _) => Some(shared),
        }
    }

    /// Opens the throttle before the first request. Returns `None` for a throttle of the
    /// application.
    ///
    /// # Errors
    ///
    /// If the table cannot be opened.
    pub fn open(&self) -> Result<Option<Throttle>> {
        let Source::Shared(shared, _) = &self.source else { return Ok(None) };
        let throttle = shared.open()?;
        self.warn_of_table(shared);
        Ok(Some(throttle))
    }

    /// Returns the domain that requests are charged to. Opens the throttle at the first call.
    ///
    /// # Errors
    ///
    /// If the throttle is closed or cannot be opened.
    pub fn domain(&self) -> Result<&Domain> {
        if let Some(domain) = self.domain.get() {
            return Ok(domain);
        }
        let domain = match &self.source {
            Source::Application(domain) => domain.clone(),
            Source::Shared(shared, name) => {
                let domain = shared.domain(name)?;
                self.warn_of_table(shared);
                domain
            }
        };
        Ok(self.domain.get_or_init(|| domain))
    }

    /// Lets all requests pass from now on. The throttle is closed together with its last
    /// middleware.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Returns the counts of this middleware in this process.
    pub fn counts(&self) -> Counts {
        self.counters.get()
    }

    /// Returns the warnings since the last call. Adapters call it after every request; without
    /// warnings it is cheap.
    pub fn take_warnings(&self) -> Vec<Warning> {
        self.warnings.take()
    }

    /// Whether [`Middleware::take_warnings`] would return warnings.
    pub fn has_warnings(&self) -> bool {
        self.warnings.has_pending()
    }

    /// Counts an error of the adapter or the application, such as an exception in the function
    /// `tag`.
    pub fn count_failure(&self) {
        self.counters.failed.add_one();
    }

    /// Decides about a request. Returns `None` if the request passes without a decision.
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
        let (decision, is_delayed) = match checked {
            Ok(checked) => checked,
            Err(error) => {
                self.counters.failed.add_one();
                let message = format!("check failed: {error}");
                self.warnings.add(FAILED, "check", once(message));
                return None;
            }
        };
        let action = self.act(&decision, is_delayed, request.can_delay);
        if matches!(action, Action::Refuse(_)) {
            self.warn_of_earlier_process(&tag);
        }
        let taken = decision.granted;
        Some(HttpDecision { action, decision, tag, taken })
    }

    /// Ends the delay of a request or of a refusal. If `is_gone`, the client has disconnected
    /// meanwhile, and its units are refunded.
    pub fn end_delay(&self, tag: &[u8], taken: u64, is_gone: bool) {
        delayed::leave();
        if is_gone {
            self.counters.gave_up.add_one();
            self.refund(tag, taken);
        }
    }

    /// Refunds the units of a request if the options say so. To be called when the response has
    /// ended.
    pub fn finish(&self, tag: &[u8], taken: u64, is_success: bool) {
        let refunds =
            if is_success { self.options.refund_successful } else { self.options.refund_failed };
        if refunds {
            self.refund(tag, taken);
        }
    }

    /// Whether the adapter must call [`Middleware::finish`].
    pub fn refunds(&self) -> bool {
        self.options.refund_failed || self.options.refund_successful
    }

    /// Returns the header fields for a decision.
    pub fn fields(&self, decision: &Decision) -> Vec<Field<'_>> {
        self.headers.fields(decision, || match self.unix_ms {
            Some(unix_ms) => unix_ms().div_ceil(1000),
            None => unix_seconds(self.domain.get()),
        })
    }

    /// Returns the response to a refused request. `body` is the result of the option `body` if that
    /// is a function, and replaces the body of the options.
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

    /// Checks the request. Also returns whether it is delayed and counted in `delayed`.
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
        let is_delayed = checked.as_ref().is_ok_and(|decision| !decision.delay.is_zero());
        if !is_delayed {
            delayed::leave();
        }
        Ok((checked?, is_delayed))
    }

    /// Counts a decision, and returns what to do.
    fn act(&self, decision: &Decision, is_delayed: bool, can_delay: bool) -> Action {
        let Options { dry_run, refusal_delay, max_delayed, .. } = self.options;
        let passed_by_dry_run = decision.dry_run && (decision.rule.is_some() || self.may_delay());
        if decision.rule.is_some() && !decision.allowed && !dry_run {
            self.counters.refused.add_one();
            let delays = !refusal_delay.is_zero() && can_delay && delayed::enter(max_delayed);
            return Action::Refuse(if delays { refusal_delay } else { Duration::ZERO });
        }
        if decision.rule.is_some() || passed_by_dry_run {
            self.counters.dry_run.add_one();
        } else {
            self.counters.passed.add_one();
        }
        if is_delayed {
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

    /// Warns about a refusal that an earlier process caused. Named tables keep their buckets when a
    /// development server or a test suite restarts.
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

/// Returns the message of a warning that is reported once for its cause.
pub(super) fn once(message: String) -> String {
    format!("{message}; this is reported once, and counted")
}
