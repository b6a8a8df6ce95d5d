//! The code that the bindings of Node and WebAssembly share: the numbers and texts that the API
//! (`api/`) exchanges with both. `surface.d.ts` describes them.

pub(crate) mod busy;
mod tree;
pub(crate) mod web;

use std::time::Duration;

use dthrottle::records::Value;
use dthrottle::{
    CheckOptions, DEFAULT_COST, Decision, Domain, Error, Result, Stats, UNLIMITED, convert,
};

pub(crate) use tree::{config, with_table};

/// The length of the list of numbers of a decision.
pub(crate) const NUMBERS: usize = Decision::FIELDS.len();

/// The options of a check. Missing ones have core's defaults.
pub(crate) fn check_options(
    cost: Option<f64>,
    max_delay_ms: Option<f64>,
    partial: Option<bool>,
    allow_debt: Option<bool>,
) -> Result<CheckOptions> {
    let mut options = match cost {
        Some(cost) => CheckOptions::cost(convert::cost_from_f64(cost)?),
        None => CheckOptions::default(),
    };
    if let Some(ms) = max_delay_ms {
        options = options.max_delay(convert::duration_from_millis("maxDelayMs", ms)?);
    }
    Ok(options.partial(partial.unwrap_or(false)).allow_debt(allow_debt.unwrap_or(false)))
}

/// A cost. The default is core's.
pub(crate) fn units(cost: Option<f64>) -> Result<u64> {
    cost.map_or(Ok(DEFAULT_COST), convert::cost_from_f64)
}

/// The time since units were used. Default: zero.
pub(crate) fn age(age_ms: Option<f64>) -> Result<Duration> {
    age_ms.map_or(Ok(Duration::ZERO), |ms| convert::duration_from_millis("ageMs", ms))
}

/// A decision as numbers, in the order of its fields.
#[inline]
pub(crate) fn numbers(decision: &Decision) -> [f64; NUMBERS] {
    decision.values().map(number)
}

/// The counts of a throttle, in the order of its fields.
pub(crate) fn counts(stats: &Stats) -> Vec<f64> {
    stats.values().map(number).into()
}

/// A value as the number that `api/records.js` reads.
#[inline(always)]
fn number(value: Value<'_>) -> f64 {
    match value {
        Value::Flag(flag) => f64::from(u8::from(*flag)),
        Value::Units(&UNLIMITED) | Value::Balance(&i64::MAX) => f64::INFINITY,
        Value::Count(count) | Value::Units(count) => *count as f64,
        Value::Balance(balance) => *balance as f64,
        Value::Time(time) | Value::Millis(time) => convert::millis(*time),
        Value::Rule(index) => index.map_or(-1.0, |index| index as f64),
        // No record that is passed as numbers has such a field.
        _ => f64::NAN,
    }
}

/// Records as JSON, which the API parses. It converts the keys to camel case.
pub(crate) fn json(records: &impl serde::Serialize) -> String {
    // Cannot fail, because all keys are strings.
    serde_json::to_string(records).unwrap_or_default()
}

/// The names of a domain's rules, in order.
pub(crate) fn rule_names(domain: &Domain) -> Vec<String> {
    domain.rules().iter().map(|rule| rule.name().to_string()).collect()
}

/// The bursts of a domain's rules, in order.
pub(crate) fn rule_limits(domain: &Domain) -> Vec<f64> {
    domain.rules().iter().map(|rule| rule.burst() as f64).collect()
}

/// The windows of a domain's rules in milliseconds, in order.
pub(crate) fn rule_windows(domain: &Domain) -> Vec<f64> {
    domain.rules().iter().map(|rule| rule.window().as_secs_f64() * 1e3).collect()
}

/// The `code` of an error for the API: the code, the line (0 for none) and the field (empty for
/// none), with blanks between them. Both bindings can set only this property of a JavaScript error.
pub(crate) fn code(error: &Error) -> String {
    let line = error.line().unwrap_or(0);
    let field = error.field().unwrap_or("");
    format!("{} {line} {field}", error.kind().code())
}
