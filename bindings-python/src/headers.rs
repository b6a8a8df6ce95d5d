//! What a response says about a decision: header fields of several kinds.
//!
//! The standard kind is that of draft-ietf-httpapi-ratelimit-headers, versions 08 to 11, in
//! structured fields (RFC 9651):
//!
//! ```text
//! RateLimit-Policy: "default";q=200;w=2
//! RateLimit: "default";r=199;t=1
//! ```
//!
//! A leaky bucket has no window that begins and ends. `q` is the burst and `w` the time in which an
//! empty bucket fills; `r` is what is left, and `t` the time until there is more.
//!
//! It runs for every request, and in Python took as long as all the rest of a middleware.

use std::fmt::Write;
use std::iter;
use std::time::{SystemTime, UNIX_EPOCH};

use dthrottle::Decision;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::decision;
use crate::errors::{Fault, guard};

/// The largest integer of a structured field.
const LARGEST: u64 = 1_000_000_000_000_000 - 1;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Standard,
    Draft7,
    Draft6,
    XRateLimit,
}

impl Kind {
    /// The names of its fields, without that of the policies.
    fn names(self) -> &'static [&'static str] {
        match self {
            Kind::Standard | Kind::Draft7 => &["RateLimit"],
            Kind::Draft6 => &["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"],
            Kind::XRateLimit => {
                &["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]
            }
        }
    }
}

/// A rule as clients see it.
struct Policy {
    quota: u64,
    /// How many seconds it takes to fill the bucket.
    window: f64,
    /// Its name as a string of a structured field.
    name: String,
}

/// Writes the fields of one kind for the rules of a domain: each as (name, quota, window), in the
/// order that they have in the domain.
#[pyclass(frozen, module = "dthrottle._dthrottle")]
pub(crate) struct Headers {
    kind: Option<Kind>,
    policies: Vec<Policy>,
    names: Vec<Py<PyString>>,
    /// The field with the policies, which is the same for all decisions.
    all: Py<PyTuple>,
}

#[pymethods]
impl Headers {
    #[new]
    fn new(py: Python<'_>, kind: &str, policies: Vec<(String, u64, f64)>) -> PyResult<Headers> {
        guard(|| {
            let kind = match kind {
                "standard" => Some(Kind::Standard),
                "draft-7" => Some(Kind::Draft7),
                "draft-6" => Some(Kind::Draft6),
                "x-ratelimit" => Some(Kind::XRateLimit),
                "none" => None,
                _ => return Err(Fault::argument(format!("headers: there is no kind {kind:?}"))),
            };
            let policies = policies.into_iter().map(|(name, quota, window)| Policy {
                quota,
                window,
                name: string(&name),
            });
            let policies = policies.collect::<Vec<_>>();
            let is_list = kind == Some(Kind::Standard);
            let all = policies.iter().map(|policy| policy.field(is_list)).collect::<Vec<_>>();
            let all = ("RateLimit-Policy", all.join(", ")).into_pyobject(py)?.unbind();
            let names = kind.map_or(&[][..], Kind::names);
            let names = names.iter().map(|name| PyString::intern(py, name).unbind()).collect();
            Ok(Headers { kind, policies, names, all })
        })
    }

    /// Whether fields of several throttles may stand in one response.
    #[getter]
    fn is_list(&self) -> bool {
        self.kind == Some(Kind::Standard)
    }

    /// The fields for a decision; none for a domain without rules.
    fn fields<'py>(
        &self,
        py: Python<'py>,
        decision: &Bound<'py, decision::Decision>,
    ) -> PyResult<Bound<'py, PyList>> {
        guard(|| Ok(self.written(py, decision.get().answer())?))
    }
}

impl Headers {
    fn written<'py>(&self, py: Python<'py>, decision: &Decision) -> PyResult<Bound<'py, PyList>> {
        let policy = decision.deciding.and_then(|index| self.policies.get(index));
        let (Some(kind), Some(policy)) = (self.kind, policy) else {
            return Ok(PyList::empty(py));
        };
        let left = decision.remaining.min(LARGEST);
        let more = more_after(decision, policy);
        let quota = policy.quota.min(LARGEST);
        let field = |index: usize, value: &str| {
            PyTuple::new(py, [self.names[index].bind(py), &PyString::new(py, value)])
        };
        let all = self.all.bind(py);
        match kind {
            Kind::Standard => {
                let mut value = String::with_capacity(policy.name.len() + 40);
                value.push_str(&policy.name);
                let _ = write!(value, ";r={left}");
                if more > 0 {
                    let _ = write!(value, ";t={more}");
                }
                PyList::new(py, [all, &field(0, &value)?])
            }
            Kind::Draft7 => {
                let value = format!("limit={quota}, remaining={left}, reset={more}");
                PyList::new(py, [all, &field(0, &value)?])
            }
            Kind::Draft6 => {
                let numbers = [quota, left, more];
                let fields = numbers.iter().zip(0..).map(|(n, i)| field(i, &n.to_string()));
                let fields = fields.collect::<PyResult<Vec<_>>>()?;
                PyList::new(py, iter::once(all).chain(&fields).collect::<Vec<_>>())
            }
            Kind::XRateLimit => {
                // Its reset is a time of day.
                let numbers = [policy.quota, decision.remaining, unix_seconds() + more];
                let fields = numbers.iter().zip(0..).map(|(n, i)| field(i, &n.to_string()));
                PyList::new(py, fields.collect::<PyResult<Vec<_>>>()?)
            }
        }
    }
}

impl Policy {
    fn field(&self, named: bool) -> String {
        let (quota, window) = (self.quota.min(LARGEST), seconds(self.window).max(1));
        if named {
            format!("{};q={quota};w={window}", self.name)
        } else {
            format!("{quota};w={window}")
        }
    }
}

/// Whole seconds after which more is left than now; 0 when the bucket is full.
///
/// What is missing comes back in `reset_after`, unit by unit, and the first no later than the
/// average of all.
fn more_after(decision: &Decision, policy: &Policy) -> u64 {
    if decision.rule.is_some() {
        return seconds(decision.retry_after.as_secs_f64()).max(1);
    }
    let missing = i128::from(decision.limit) - i128::from(decision.balance);
    if missing <= 0 {
        return 0;
    }
    let average = decision.reset_after.as_secs_f64() / missing as f64;
    // With several rules the reset may be another's.
    seconds(average.min(policy.window / policy.quota as f64)).max(1)
}

/// Whole seconds, rounded up. A nanosecond that comes of writing seconds as a float is no further
/// one.
fn seconds(seconds: f64) -> u64 {
    ((seconds - 1e-9).ceil() as u64).min(LARGEST)
}

fn unix_seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() + u64::from(since.subsec_nanos() > 0)
}

/// A string of a structured field: of printable ASCII, the rest percent-encoded.
fn string(text: &str) -> String {
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
