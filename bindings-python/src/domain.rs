//! A domain, and every call about a tag.
//!
//! No call here releases the GIL, because that would take longer than the check.

use std::sync::Arc;
use std::time::Duration;

use dthrottle::{CheckOptions, DEFAULT_COST};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::args::{self, Arg};
use crate::decision::Decision;
use crate::errors::{CallError, guard};
use crate::raw::HasDomain;

/// A rule of a domain.
#[pyclass(frozen, eq, hash, module = "dthrottle")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Rule {
    name: Box<str>,
    limit: u64,
    window: Duration,
}

impl Rule {
    /// A rule of which only the name is known.
    pub(crate) fn named(name: &str) -> Rule {
        Rule { name: name.into(), limit: 0, window: Duration::ZERO }
    }
}

#[pymethods]
impl Rule {
    /// The rule's name, unique in its domain.
    #[getter]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The rule's burst in units.
    #[getter]
    fn limit(&self) -> u64 {
        self.limit
    }

    /// The seconds in which an empty bucket fills.
    #[getter]
    fn window(&self) -> f64 {
        self.window.as_secs_f64()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        guard(|| {
            let name = PyString::new(py, &self.name).repr()?;
            let name = name.to_string_lossy();
            Ok(format!("Rule(name={name}, limit={}, window={:?})", self.limit, self.window()))
        })
    }
}

/// A named list of rules, and every call about a tag.
///
/// Get it once from Throttle.domain and keep it. Any thread may use it. A tag is str or bytes; str
/// counts as its UTF-8.
#[pyclass(frozen, subclass, module = "dthrottle")]
pub(crate) struct Domain {
    domain: dthrottle::Domain,
    rules: Arc<[Rule]>,
}

impl From<dthrottle::Domain> for Domain {
    fn from(domain: dthrottle::Domain) -> Domain {
        let rules = domain.rules().iter().map(|rule| Rule {
            name: rule.name().into(),
            limit: rule.burst(),
            window: rule.window(),
        });
        Domain { rules: rules.collect(), domain }
    }
}

impl HasDomain for Domain {
    fn domain(&self) -> &dthrottle::Domain {
        &self.domain
    }
}

impl Domain {
    /// The core's domain.
    pub(crate) fn core(&self) -> &dthrottle::Domain {
        &self.domain
    }

    #[inline]
    pub(crate) fn decision(&self, answer: dthrottle::Decision) -> Decision {
        Decision::new(answer, Arc::clone(&self.rules))
    }

    #[inline]
    fn checked(&self, tag: &[u8], options: CheckOptions) -> Result<Decision, CallError> {
        Ok(self.decision(self.domain.check_with(tag, options)?))
    }
}

/// The options of a check. Absent ones have the default of the core.
#[inline]
fn check_options(
    cost: Arg<'_, '_>,
    max_delay: Arg<'_, '_>,
    partial: Arg<'_, '_>,
    allow_debt: Arg<'_, '_>,
) -> Result<CheckOptions, CallError> {
    let mut options = cost.cost()?.map_or_else(CheckOptions::default, CheckOptions::cost);
    if let Some(max_delay) = max_delay.seconds("max_delay")? {
        options = options.max_delay(max_delay);
    }
    if let Some(partial) = partial.flag("partial")? {
        options = options.partial(partial);
    }
    if let Some(allow_debt) = allow_debt.flag("allow_debt")? {
        options = options.allow_debt(allow_debt);
    }
    Ok(options)
}

/// `allow` of a domain or a throttle.
#[inline]
pub(crate) fn allow(
    domain: &dthrottle::Domain,
    tag: &Bound<'_, PyAny>,
    cost: Arg<'_, '_>,
) -> Result<bool, CallError> {
    let cost = cost.cost()?;
    let tag = args::tag(tag)?;
    Ok(match cost {
        // Faster, because the core knows this cost when it is compiled.
        None => domain.allow(tag)?,
        Some(cost) => domain.allow_with(tag, CheckOptions::cost(cost))?,
    })
}

#[pymethods]
impl Domain {
    /// The domain's name.
    #[getter]
    fn name(&self) -> &str {
        self.domain.name()
    }

    /// The domain's rules, in the order in which they were given.
    #[getter]
    fn rules<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        guard(|| Ok(PyTuple::new(py, self.rules.iter().cloned())?))
    }

    /// Checks whether cost units are available, and charges them if so.
    ///
    /// With max_delay the check is also allowed if the units become available within that time. They
    /// are charged immediately, and the decision's delay says how long to wait. A caller that does
    /// not wait calls refund. With partial, the check takes the units that are available, and the
    /// decision's granted says how many. With allow_debt the cost may be above the burst: the check
    /// then needs a full bucket and leaves it in debt.
    #[pyo3(
        signature = (
            tag, cost=Arg::ABSENT, *, max_delay=Arg::ABSENT, partial=Arg::ABSENT,
            allow_debt=Arg::ABSENT
        ),
        text_signature = "($self, tag, cost=1, *, max_delay=0.0, partial=False, allow_debt=False)"
    )]
    fn check(
        &self,
        tag: &Bound<'_, PyAny>,
        cost: Arg<'_, '_>,
        max_delay: Arg<'_, '_>,
        partial: Arg<'_, '_>,
        allow_debt: Arg<'_, '_>,
    ) -> PyResult<Decision> {
        guard(|| {
            let options = check_options(cost, max_delay, partial, allow_debt)?;
            self.checked(args::tag(tag)?, options)
        })
    }

    /// Like check, but returns only True or False.
    #[pyo3(signature = (tag, cost=Arg::ABSENT), text_signature = "($self, tag, cost=1)")]
    fn allow(&self, tag: &Bound<'_, PyAny>, cost: Arg<'_, '_>) -> PyResult<bool> {
        guard(|| allow(&self.domain, tag, cost))
    }

    /// Like allow, for one unit of each tag in turn. Returns a list of True or False in the order of
    /// the tags. For many tags this is faster than one call each.
    fn allow_many(&self, tags: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
        guard(|| {
            let tags = args::tags(tags)?;
            let tags = tags.iter().map(args::tag).collect::<Result<Vec<_>, _>>()?;
            let mut allowed = vec![false; tags.len()];
            self.domain.allow_many(&tags, &mut allowed)?;
            Ok(allowed)
        })
    }

    /// Returns the decision that check would return, without charging.
    #[pyo3(
        signature = (
            tag, cost=Arg::ABSENT, *, max_delay=Arg::ABSENT, partial=Arg::ABSENT,
            allow_debt=Arg::ABSENT
        ),
        text_signature = "($self, tag, cost=1, *, max_delay=0.0, partial=False, allow_debt=False)"
    )]
    fn peek(
        &self,
        tag: &Bound<'_, PyAny>,
        cost: Arg<'_, '_>,
        max_delay: Arg<'_, '_>,
        partial: Arg<'_, '_>,
        allow_debt: Arg<'_, '_>,
    ) -> PyResult<Decision> {
        guard(|| {
            let options = check_options(cost, max_delay, partial, allow_debt)?;
            Ok(self.decision(self.domain.peek_with(args::tag(tag)?, options)?))
        })
    }

    /// Gives cost units back to the tag's bucket of every rule: for work that was not done.
    #[pyo3(signature = (tag, cost=Arg::ABSENT), text_signature = "($self, tag, cost=1)")]
    fn refund(&self, tag: &Bound<'_, PyAny>, cost: Arg<'_, '_>) -> PyResult<()> {
        guard(|| {
            let cost = cost.cost()?.unwrap_or(DEFAULT_COST);
            Ok(self.domain.refund(args::tag(tag)?, cost)?)
        })
    }

    /// Fills the tag's bucket of every rule.
    fn reset(&self, tag: &Bound<'_, PyAny>) -> PyResult<()> {
        guard(|| Ok(self.domain.reset(args::tag(tag)?)?))
    }

    /// Charges cost units that were used elsewhere, age seconds ago, without a check and without
    /// reporting them to peers. A bucket may go below zero.
    #[pyo3(signature = (tag, cost, age=Arg::ABSENT), text_signature = "($self, tag, cost, age=0.0)")]
    fn charge_local(
        &self,
        tag: &Bound<'_, PyAny>,
        cost: &Bound<'_, PyAny>,
        age: Arg<'_, '_>,
    ) -> PyResult<()> {
        guard(|| {
            let cost = args::cost(cost)?;
            let age = age.seconds("age")?.unwrap_or_default();
            Ok(self.domain.charge_local(args::tag(tag)?, cost, age)?)
        })
    }

    /// Charges cost units without a check, and reports them to peers. A bucket may go below zero.
    /// Returns the seconds until no bucket of the tag is below zero.
    fn charge(&self, tag: &Bound<'_, PyAny>, cost: &Bound<'_, PyAny>) -> PyResult<f64> {
        guard(|| {
            let cost = args::cost(cost)?;
            Ok(self.domain.charge(args::tag(tag)?, cost)?.as_secs_f64())
        })
    }

    fn __reduce__(&self) -> PyResult<()> {
        guard(|| {
            Err(CallError::argument(
                "a throttle or domain cannot be copied or pickled; build another one from the same \
                 configuration",
            ))
        })
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        guard(|| {
            let domain = slf.get();
            let name = PyString::new(slf.py(), domain.name()).repr()?;
            let name = name.to_string_lossy();
            let rules = domain.rules(slf.py())?.repr()?;
            let class = args::type_name(slf);
            let rules = rules.to_string_lossy();
            Ok(format!("<{class} {name}, rules={rules}>"))
        })
    }
}
