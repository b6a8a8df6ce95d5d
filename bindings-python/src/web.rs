//! HTTP middleware for Python: converts requests and options for the core's HTTP policy, and its
//! decisions for Python. The adapters for servers and frameworks are in `python/dthrottle`.
//!
//! No call here lets go of the interpreter: the locks of shared throttles rely on it.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dthrottle::config::{Entry, Names, Node, Value};
use dthrottle::web::{self, Action, Body, Options, Setup, Tag, TagSource};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyList, PyString};

use crate::args::{Arg, type_name};
use crate::clock;
use crate::config::{tree, tree_of};
use crate::decision::Decision;
use crate::domain::Domain;
use crate::errors::{Fault, guard};
use crate::throttle::Throttle;

/// One middleware, or one limit of a route.
///
/// The options are those of docs/http.md. A throttle given as the option throttle, and a clock, are
/// taken as they are; functions are the adapter's to call. on_warning gets the code and the text of
/// what the application's author should know.
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

/// What to do with a request.
#[pyclass(frozen, module = "dthrottle._dthrottle")]
pub(crate) struct HttpDecision {
    middleware: Py<Middleware>,
    decided: web::HttpDecision,
    decision: Py<Decision>,
    fields: Py<PyList>,
    is_finished: AtomicBool,
}

type Pairs<'py> = Vec<(Bound<'py, PyString>, Bound<'py, PyString>)>;

#[pymethods]
impl Middleware {
    #[new]
    #[pyo3(signature = (options, *, application=None, place="", within=None, on_warning=None))]
    fn new(
        py: Python<'_>,
        options: &Bound<'_, PyDict>,
        application: Option<&str>,
        place: &str,
        within: Option<&Bound<'_, SharedThrottle>>,
        on_warning: Option<Py<PyAny>>,
    ) -> PyResult<Middleware> {
        guard(|| {
            let mut setup = Setup { application, place, ..Setup::default() };
            setup.within = within.map(|shared| &shared.get().0);
            let mut entries = Vec::new();
            for (key, value) in options.iter() {
                let key = key.extract::<String>()?;
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
                    _ => tree(&value)?,
                };
                entries.push(Entry::new(key, value));
            }
            let root = Node::from(Value::Table(entries));
            let middleware = web::Middleware::read(&root, Names::Snake, setup)?;
            let made = Middleware { middleware, domain: OnceLock::new(), on_warning };
            made.warn(py);
            Ok(made)
        })
    }

    /// Checks that every entry of allow can name a client: an error as long as tags are addresses.
    fn check_allow(&self) -> PyResult<()> {
        guard(|| Ok(self.middleware.options().check_allow()?))
    }

    /// Opens the throttle, unless it was given: an unusable table is an error now.
    fn open(&self, py: Python<'_>) -> PyResult<Option<Py<Throttle>>> {
        guard(|| {
            let throttle = self.middleware.open()?;
            self.warn(py);
            throttle.map(|throttle| Ok(Py::new(py, Throttle::of(throttle))?)).transpose()
        })
    }

    /// The domain that requests are counted in. The throttle gets no other domains from now on.
    fn domain(&self, py: Python<'_>) -> PyResult<Domain> {
        guard(|| {
            let domain = self.middleware.domain()?.clone();
            self.warn(py);
            Ok(domain.into())
        })
    }

    /// The name of the domain that requests are counted in.
    #[getter]
    fn domain_name(&self) -> &str {
        self.middleware.domain_name()
    }

    /// The name of the table, if it was made for middleware and has one.
    #[getter]
    fn table_name(&self) -> Option<String> {
        self.middleware.table_name()
    }

    /// The throttle that this middleware shares with others; None: it was given one.
    #[getter]
    fn shared(&self) -> Option<SharedThrottle> {
        self.middleware.shared().cloned().map(SharedThrottle)
    }

    /// The methods that are throttled; None: all.
    #[getter]
    fn methods(&self) -> Option<Vec<String>> {
        self.middleware.options().methods.clone()
    }

    /// Regular expressions for the paths that are throttled; none: all paths.
    #[getter]
    fn routes(&self) -> Vec<String> {
        self.middleware.options().routes.clone()
    }

    /// The header that has the tag, in small letters.
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

    /// Whether requests or refusals may be held.
    #[getter]
    fn holds(&self) -> bool {
        let options = self.middleware.options();
        !options.max_delay.is_zero() || !options.refusal_delay.is_zero()
    }

    /// Whether HttpDecision.finish must be called.
    #[getter]
    fn refunds(&self) -> bool {
        self.middleware.refunds()
    }

    /// Whether all header fields may stand beside the same fields of another throttle.
    #[getter]
    fn is_list(&self) -> bool {
        self.middleware.headers().is_list() && !self.middleware.options().legacy_headers
    }

    /// What was counted in this process, by name.
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

    /// Decides about a request; None: it passes, and nothing is to be said about it.
    ///
    /// tag is what the header or the function gave; it is left out where the function failed.
    #[pyo3(
        signature = (peer, forwarded=None, scope="", can_wait=true, tag=Arg::ABSENT, cost=None),
        text_signature = "($self, peer, forwarded=None, scope='', can_wait=True, tag=..., cost=None)"
    )]
    fn decide(
        slf: &Bound<'_, Self>,
        peer: &Bound<'_, PyAny>,
        forwarded: Option<&Bound<'_, PyAny>>,
        scope: &str,
        can_wait: bool,
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
                can_wait,
                ..Default::default()
            };
            let decided = this.middleware.decide(&request);
            this.warn(py);
            let Some(decided) = decided else { return Ok(None) };
            let fields = pairs(py, &this.middleware.fields(&decided.decision));
            Ok(Some(HttpDecision {
                decision: Py::new(py, this.decision(&decided)?)?,
                fields: PyList::new(py, fields)?.unbind(),
                middleware: slf.clone().unbind(),
                is_finished: AtomicBool::new(false),
                decided,
            }))
        })
    }
}

impl Middleware {
    fn decision(&self, decided: &web::HttpDecision) -> Result<Decision, Fault> {
        let domain = match self.domain.get() {
            Some(domain) => domain,
            None => {
                let domain = self.middleware.domain()?.clone().into();
                self.domain.get_or_init(|| domain)
            }
        };
        Ok(domain.decision(decided.decision))
    }

    /// Passes warnings on. An error of the receiver is printed, and concerns no request.
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

#[pymethods]
impl HttpDecision {
    /// Whether to refuse the request.
    #[getter]
    fn refused(&self) -> bool {
        matches!(self.decided.action, Action::Refuse(_))
    }

    /// Seconds for which to hold the request, or its refusal. If not 0, end_hold must be called.
    #[getter]
    fn wait(&self) -> f64 {
        match self.decided.action {
            Action::Pass => 0.0,
            Action::Hold(wait) | Action::Refuse(wait) => wait.as_secs_f64(),
        }
    }

    /// The throttle's decision.
    #[getter]
    fn decision(&self, py: Python<'_>) -> Py<Decision> {
        self.decision.clone_ref(py)
    }

    /// The header fields of the response, as pairs of name and value.
    #[getter]
    fn fields(&self, py: Python<'_>) -> Py<PyList> {
        self.fields.clone_ref(py)
    }

    /// Whole seconds after which the same request would pass, at least one.
    #[getter]
    fn retry_after(&self) -> u64 {
        web::retry_after(&self.decided.decision)
    }

    /// The response to a refusal: its status, its fields besides those of every response, and its
    /// content. body replaces that of the options.
    #[pyo3(signature = (body=None))]
    fn refusal<'py>(
        &self,
        py: Python<'py>,
        body: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(u16, Pairs<'py>, Bound<'py, PyBytes>)> {
        guard(|| {
            let body = body.map(body_of).transpose()?;
            let middleware = &self.middleware.get().middleware;
            let refusal = middleware.refusal(&self.decided.decision, body.as_ref());
            let own = refusal.fields.len() - self.fields.bind(py).len();
            let fields = pairs(py, &refusal.fields[..own]);
            Ok((refusal.status, fields, PyBytes::new(py, &refusal.body)))
        })
    }

    /// Ends a hold: frees the place, and gives back what was taken if the client has left.
    fn end_hold(&self, py: Python<'_>, is_gone: bool) {
        let this = self.middleware.get();
        this.middleware.end_hold(&self.decided.tag, self.decided.taken, is_gone);
        this.warn(py);
    }

    /// Gives back what was taken, if the options say so for such a response. Only the first call
    /// counts.
    fn finish(&self, py: Python<'_>, is_success: bool) {
        if self.is_finished.swap(true, Ordering::Relaxed) {
            return;
        }
        let this = self.middleware.get();
        this.middleware.finish(&self.decided.tag, self.decided.taken, is_success);
        this.warn(py);
    }
}

/// Writes header fields for the rules of a domain that stand under a name of their own.
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

    /// Whether the fields may stand beside the same fields of another throttle.
    #[getter]
    fn is_list(&self) -> bool {
        self.0.is_list()
    }

    /// The fields for a decision.
    fn fields<'py>(&self, decision: &Bound<'py, Decision>) -> Pairs<'py> {
        let unix_s = || {
            let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
            since.as_secs() + u64::from(since > Duration::from_secs(since.as_secs()))
        };
        pairs(decision.py(), &self.0.fields(decision.get().answer(), unix_s))
    }
}

/// Finds the client behind trusted proxies: 4 bytes for IPv4, 16 for IPv6.
///
/// Of an IPv6 address the first ipv6_prefix bits remain, because one client commonly has all
/// addresses behind them.
#[pyclass(frozen, module = "dthrottle.address")]
pub(crate) struct ClientAddress(web::ClientAddress);

#[pymethods]
impl ClientAddress {
    #[new]
    #[pyo3(
        signature = (*, trusted_proxies=Arg::ABSENT, ipv6_prefix=Arg::ABSENT),
        text_signature = "(*, trusted_proxies=0, ipv6_prefix=64)"
    )]
    fn new(trusted_proxies: Arg<'_, '_>, ipv6_prefix: Arg<'_, '_>) -> PyResult<ClientAddress> {
        guard(|| {
            // For middleware None is the default; here it is no value.
            for (name, arg, right) in [
                ("trusted_proxies", &trusted_proxies, "a number of proxies, or a list of networks"),
                ("ipv6_prefix", &ipv6_prefix, "a number of bits from 1 to 128"),
            ] {
                if arg.value().is_some_and(PyAnyMethods::is_none) {
                    let message = format!("must be {right}, got None");
                    return Err(dthrottle::Error::config(name, message).into());
                }
            }
            let options = read(&[
                ("trusted_proxies", trusted_proxies.value()),
                ("ipv6_prefix", ipv6_prefix.value()),
            ])?;
            Ok(ClientAddress(options.address))
        })
    }

    /// The tag of the client that sent this request, or None if its address is unknown.
    #[pyo3(signature = (peer, forwarded_for=None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        peer: &Bound<'py, PyAny>,
        forwarded_for: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        guard(|| {
            let (peer, lines) = (text(peer), lines(forwarded_for)?);
            let forwarded: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
            let found = self.0.find(peer.as_deref(), &forwarded);
            Ok(found.map(|address| PyBytes::new(py, self.0.tag(address).as_ref())))
        })
    }
}

/// Gives the client's address as a tag, or None if nothing of it is known.
///
/// The peer opened the connection. The header X-Forwarded-For, in one text or several, is only read
/// if proxies are trusted. To ask often, make a ClientAddress once.
#[pyfunction]
#[pyo3(
    signature = (
        peer, forwarded_for=None, *, trusted_proxies=Arg::ABSENT, ipv6_prefix=Arg::ABSENT
    ),
    text_signature = "(peer, forwarded_for=None, *, trusted_proxies=0, ipv6_prefix=64)"
)]
pub(crate) fn client_address<'py>(
    py: Python<'py>,
    peer: &Bound<'py, PyAny>,
    forwarded_for: Option<&Bound<'py, PyAny>>,
    trusted_proxies: Arg<'_, '_>,
    ipv6_prefix: Arg<'_, '_>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    ClientAddress::new(trusted_proxies, ipv6_prefix)?.__call__(py, peer, forwarded_for)
}

/// Parses an address as peers and proxies write it; 4 or 16 bytes, or None if it is none.
///
/// Blanks around it, brackets, a port and a zone do not matter, nor does its spelling.
#[pyfunction]
pub(crate) fn parse_address<'py>(
    py: Python<'py>,
    text: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    guard(|| {
        let found = self::text(text).and_then(|text| web::parse_address(&text));
        let whole = web::ClientAddress::new(web::Trusted::Count(0), 128);
        Ok(found.map(|address| PyBytes::new(py, whole.tag(address).as_ref())))
    })
}

/// The name of an application's table. shown are the parts that a person recognizes; identity is
/// everything that tells this application from others.
#[pyfunction]
pub(crate) fn application_table_name(shown: Vec<String>, identity: Vec<String>) -> String {
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    let identity: Vec<&str> = identity.iter().map(String::as_str).collect();
    web::application_table_name(&shown, &identity)
}

/// A hint for a word that is none of the known ones.
#[pyfunction]
pub(crate) fn nearest(word: &str, known: Vec<String>) -> String {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    web::nearest(word, &known)
}

/// Some options of middleware, read on their own.
fn read(options: &[(&str, Option<&Bound<'_, PyAny>>)]) -> Result<Options, Fault> {
    Ok(Options::read(&tree_of(options)?, Names::Snake)?)
}

/// Text; a lone surrogate in it is replaced.
fn text<'a>(value: &'a Bound<'_, PyAny>) -> Option<Cow<'a, str>> {
    Some(value.cast::<PyString>().ok()?.to_string_lossy())
}

/// The lines of a header: one text, several, or none.
fn lines<'a>(value: Option<&'a Bound<'_, PyAny>>) -> Result<Vec<Cow<'a, str>>, Fault> {
    let Some(value) = value else { return Ok(Vec::new()) };
    if let Some(text) = text(value) {
        return Ok(if text.is_empty() { Vec::new() } else { vec![text] });
    }
    let mut lines = Vec::new();
    for line in value.try_iter()? {
        lines.extend(text(&line?).map(|line| Cow::Owned(line.into_owned())));
    }
    Ok(lines)
}

/// A value as a tag: text as UTF-8, bytes, or the digits of an int. `tests/vectors/tags.json` lists
/// the values.
fn tag_bytes(value: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    if let Ok(text) = value.cast::<PyString>() {
        return Some(text.to_str().ok()?.into());
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Some(bytes.as_bytes().into());
    }
    if value.is_instance_of::<PyBool>() || !value.is_instance_of::<PyInt>() {
        return None;
    }
    // Subclasses may have another `__str__`. Very large ints have no digits.
    let digits = value.py().get_type::<PyInt>().call_method1("__repr__", (value,)).ok()?;
    Some(digits.cast::<PyString>().ok()?.to_str().ok()?.into())
}

fn body_of(value: &Bound<'_, PyAny>) -> Result<Body, Fault> {
    let value = tree(value)?;
    match Body::from_value(&value) {
        Ok(Body::Function) => Err(Fault::argument("body: a function gave a function")),
        Ok(body) => Ok(body),
        Err(right) => {
            Err(dthrottle::Error::config("body", format!("must be {right}, got {value}")).into())
        }
    }
}

fn pairs<'py>(py: Python<'py>, fields: &[web::Field<'_>]) -> Pairs<'py> {
    let pair = |(name, value): &web::Field<'_>| {
        (PyString::intern(py, name), PyString::new(py, value.as_ref()))
    };
    fields.iter().map(pair).collect()
}
