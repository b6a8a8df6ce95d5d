//! HTTP middleware: converts requests and options for the HTTP policy of the core, and its decisions
//! to Python. The adapters for servers and frameworks are in `python/dthrottle`.
//!
//! No call here releases the GIL, so no other thread can fork while a lock of a shared throttle is
//! held.

mod address;
mod convert;
mod http_decision;

use std::sync::OnceLock;
use std::time::Duration;

use dthrottle::config::{ConfigNode, Entry, Names, Value};
use dthrottle::web::{self, AdapterSettings, Tag, TagSource};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

pub(crate) use self::address::{ClientAddress, client_address, parse_address};
use self::convert::{Pairs, lines, pairs, read, tag_bytes, text};
pub(crate) use self::http_decision::HttpDecision;
use crate::args::{Arg, quote, timedelta_seconds, type_name};
use crate::clock;
use crate::config::tree;
use crate::decision::Decision;
use crate::domain::Domain;
use crate::errors::{CallError, guard};
use crate::throttle::Throttle;

/// One middleware, or one limit of a route.
///
/// The options are those of docs/http.md, and throttle and clock, which take objects. The adapter
/// calls the functions among the options. With is_template, allow may contain tags even if the tag is
/// the address, because routes may set another tag. on_warning receives the code and the text of each
/// warning.
#[pyclass(frozen, module = "dthrottle._dthrottle")]
pub(crate) struct Middleware {
    middleware: web::Middleware,
    /// Set by the first request.
    domain: OnceLock<Domain>,
    on_warning: Option<Py<PyAny>>,
}

/// A throttle that several middlewares use.
#[pyclass(frozen, module = "dthrottle._dthrottle")]
pub(crate) struct SharedThrottle(web::SharedThrottle);

#[pymethods]
impl Middleware {
    #[new]
    #[pyo3(signature = (options, *, application=None, name_part="", is_template=false, within=None, on_warning=None))]
    fn new(
        py: Python<'_>,
        options: &Bound<'_, PyDict>,
        application: Option<&str>,
        name_part: &str,
        is_template: bool,
        within: Option<&Bound<'_, SharedThrottle>>,
        on_warning: Option<Py<PyAny>>,
    ) -> PyResult<Middleware> {
        guard(|| {
            let mut setup = AdapterSettings {
                application,
                name_part,
                is_template,
                ..AdapterSettings::default()
            };
            setup.within = within.map(|shared| &shared.get().0);
            let mut entries = Vec::new();
            for (key, value) in options.iter() {
                let Ok(key) = key.extract::<String>() else {
                    let message = format!("must have names that are text, got {}", quote(&key));
                    return Err(dthrottle::Error::config("options", message).into());
                };
                if value.is_none() {
                    continue;
                }
                let host = Value::Other(format!("a {}", type_name(&value)));
                let value = match key.as_str() {
                    "throttle" => {
                        let domain = value.cast::<Domain>().map_err(PyErr::from)?;
                        setup.domain = Some(domain.get().core().clone());
                        host
                    }
                    "clock" => {
                        setup.clock = clock::given(Some(&value))?.map(Into::into);
                        host
                    }
                    "max_delay" => match timedelta_seconds(&value)? {
                        Some(seconds) => Value::Number(seconds),
                        None => tree(&value)?,
                    },
                    "throttle_milliseconds" => match timedelta_seconds(&value)? {
                        Some(seconds) => Value::Number(seconds * 1e3),
                        None => tree(&value)?,
                    },
                    _ => tree(&value)?,
                };
                entries.push(Entry::new(key, value));
            }
            let root = ConfigNode::from(Value::Table(entries));
            let middleware = web::Middleware::read(&root, Names::Snake, setup)?;
            let made = Middleware { middleware, domain: OnceLock::new(), on_warning };
            made.warn(py);
            Ok(made)
        })
    }

    /// Opens the throttle, so that an unusable table is an error now. Returns None for a throttle of
    /// the application.
    fn open(&self, py: Python<'_>) -> PyResult<Option<Py<Throttle>>> {
        guard(|| {
            let throttle = self.middleware.open()?;
            self.warn(py);
            throttle.map(|throttle| Ok(Py::new(py, Throttle::of(throttle))?)).transpose()
        })
    }

    /// Returns the domain that requests are counted in. From then on the throttle gets no more domains.
    fn domain(&self, py: Python<'_>) -> PyResult<Domain> {
        guard(|| {
            let domain = self.middleware.domain()?.clone();
            self.warn(py);
            Ok(domain.into())
        })
    }

    /// The name of a domain that has another rate or burst in the table; None if there is none.
    #[getter]
    fn changed_domain(&self) -> PyResult<Option<String>> {
        guard(|| Ok(self.middleware.shared().and_then(web::SharedThrottle::changed_domain)))
    }

    /// The name of the domain that requests are counted in.
    #[getter]
    fn domain_name(&self) -> &str {
        self.middleware.domain_name()
    }

    /// The name of the table; None if it has no name or is that of the application's throttle.
    #[getter]
    fn table_name(&self) -> Option<String> {
        self.middleware.table_name()
    }

    /// The throttle that this middleware shares with others; None for a throttle of the application.
    #[getter]
    fn shared(&self) -> Option<SharedThrottle> {
        self.middleware.shared().cloned().map(SharedThrottle)
    }

    /// The methods that are throttled; None for all.
    #[getter]
    fn methods(&self) -> Option<Vec<String>> {
        self.middleware.options().methods.clone()
    }

    /// Regular expressions for the paths that are throttled; empty for all paths.
    #[getter]
    fn routes(&self) -> Vec<String> {
        self.middleware.options().routes.clone()
    }

    /// The lower-case name of the header that contains the tag.
    #[getter]
    fn tag_header(&self) -> Option<&str> {
        match &self.middleware.options().tag {
            TagSource::Header(name) => Some(name),
            _ => None,
        }
    }

    /// Whether clients are exempt by their addresses, so that is_exempt must be called.
    #[getter]
    fn exempts(&self) -> bool {
        !self.middleware.options().exempt.is_empty()
    }

    /// Whether requests or refusals may be delayed.
    #[getter]
    fn may_delay(&self) -> bool {
        let options = self.middleware.options();
        !options.max_delay.is_zero() || !options.refusal_delay.is_zero()
    }

    /// Whether HttpDecision.finish must be called.
    #[getter]
    fn refunds(&self) -> bool {
        self.middleware.refunds()
    }

    /// Whether all header fields are lists, to which several throttles may add.
    #[getter]
    fn is_list(&self) -> bool {
        self.middleware.headers().is_list() && !self.middleware.options().legacy_headers
    }

    /// The counts of this process, by name.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guard(|| {
            let counts = PyDict::new(py);
            let values = self.middleware.counts().values();
            for (name, value) in web::Counts::NAMES.iter().zip(values) {
                counts.set_item(name, value)?;
            }
            Ok(counts)
        })
    }

    /// Counts an error of one of the application's functions.
    fn count_failure(&self) {
        self.middleware.count_failure();
    }

    /// Whether the client is exempt by its address.
    #[pyo3(signature = (peer, forwarded=None))]
    fn is_exempt(
        &self,
        peer: &Bound<'_, PyAny>,
        forwarded: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        guard(|| {
            let (peer, lines) = (text(peer), lines(forwarded)?);
            let forwarded: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
            let request =
                web::Request { peer: peer.as_deref(), forwarded: &forwarded, ..Default::default() };
            Ok(self.middleware.is_exempt(&request))
        })
    }

    /// Decides about a request. Returns None if the request passes without a decision.
    ///
    /// tag is the value of the header or the result of the function. It is absent if the function
    /// failed.
    #[pyo3(
        signature = (peer, forwarded=None, scope="", can_delay=true, tag=Arg::ABSENT, cost=None),
        text_signature = "($self, peer, forwarded=None, scope='', can_delay=True, tag=..., cost=None)"
    )]
    fn decide(
        slf: &Bound<'_, Self>,
        peer: &Bound<'_, PyAny>,
        forwarded: Option<&Bound<'_, PyAny>>,
        scope: &str,
        can_delay: bool,
        tag: Arg<'_, '_>,
        cost: Option<u64>,
    ) -> PyResult<Option<HttpDecision>> {
        guard(|| {
            let (py, this) = (slf.py(), slf.get());
            let (peer, lines) = (text(peer), lines(forwarded)?);
            let forwarded: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
            let peer = peer.as_deref();
            let kind;
            let digits;
            let tag = match (&this.middleware.options().tag, tag.value()) {
                (TagSource::Address, _) => Tag::Address,
                (TagSource::Function, None) => Tag::Failed,
                (TagSource::Header(_), None) => Tag::Missing,
                (source, Some(value)) => match tag_bytes(value) {
                    Some(bytes) => {
                        digits = bytes;
                        match source {
                            TagSource::Header(_) if digits.is_empty() => Tag::Missing,
                            _ => Tag::Value(&digits),
                        }
                    }
                    None if *source != TagSource::Function => Tag::Missing,
                    None => {
                        kind = type_name(value);
                        Tag::Unusable(&kind)
                    }
                },
            };
            let request = web::Request {
                peer,
                forwarded: &forwarded,
                tag,
                cost,
                scope,
                can_delay,
                ..Default::default()
            };
            let decided = this.middleware.decide(&request);
            this.warn(py);
            let Some(decided) = decided else { return Ok(None) };
            let fields = pairs(py, &this.middleware.fields(&decided.decision));
            let decision = Py::new(py, this.decision(&decided)?)?;
            let fields = PyList::new(py, fields)?.unbind();
            Ok(Some(HttpDecision::new(slf.clone().unbind(), decided, decision, fields)))
        })
    }
}

impl Middleware {
    fn decision(&self, decided: &web::HttpDecision) -> Result<Decision, CallError> {
        let domain = match self.domain.get() {
            Some(domain) => domain,
            None => {
                let domain = self.middleware.domain()?.clone().into();
                self.domain.get_or_init(|| domain)
            }
        };
        Ok(domain.decision(decided.decision))
    }

    /// Passes warnings to on_warning. An exception that it raises is printed, and fails no request.
    fn warn(&self, py: Python<'_>) {
        for warning in self.middleware.take_warnings() {
            if let Some(receiver) = &self.on_warning
                && let Err(error) = receiver.call1(py, (warning.code, warning.message))
            {
                error.write_unraisable(py, None);
            }
        }
    }
}

/// Makes header fields for the rules of a domain, under another name.
#[pyclass(frozen, module = "dthrottle._dthrottle")]
pub(crate) struct Headers(web::Headers);

#[pymethods]
impl Headers {
    #[new]
    fn new(kind: &Bound<'_, PyAny>, name: &str, domain: &Bound<'_, Domain>) -> PyResult<Headers> {
        guard(|| {
            let kind = read(&[("headers", Some(kind))])?.headers;
            let rules = domain.get().core().rules();
            let rules = rules.iter().map(|rule| (rule.name(), rule.burst(), rule.window()));
            Ok(Headers(web::Headers::new(kind, false, web::Policy::all(name, rules))))
        })
    }

    /// Whether the fields are lists, to which several throttles may add.
    #[getter]
    fn is_list(&self) -> bool {
        self.0.is_list()
    }

    /// Returns the fields for a decision.
    fn fields<'py>(&self, decision: &Bound<'py, Decision>) -> Pairs<'py> {
        let unix_s = || {
            let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
            since.as_secs() + u64::from(since > Duration::from_secs(since.as_secs()))
        };
        pairs(decision.py(), &self.0.fields(decision.get().answer(), unix_s))
    }
}

/// Returns the name of an application's table. shown are the parts that a person recognizes. identity
/// has everything that distinguishes this application from others.
#[pyfunction]
pub(crate) fn application_table_name(shown: Vec<String>, identity: Vec<String>) -> String {
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    let identity: Vec<&str> = identity.iter().map(String::as_str).collect();
    web::application_table_name(&shown, &identity)
}

/// Returns a hint for an unknown word: the most similar known word, or all of them.
#[pyfunction]
pub(crate) fn nearest(word: &str, known: Vec<String>) -> String {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    web::nearest(word, &known)
}
