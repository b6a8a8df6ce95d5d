//! What the two JavaScript doors, Node and WebAssembly, have in common: the numbers and texts that
//! the face (`face/`) exchanges with either of them. `surface.d.ts` describes them for its reader.

pub(crate) mod busy;
pub(crate) mod cluster;
mod tree;

use std::time::Duration;

use dthrottle::{Ask, DEFAULT_COST, Decision, Domain, Error, Result, Stats, UNLIMITED, convert};

pub(crate) use tree::{config, with_table};

/// How many numbers a decision is.
pub(crate) const NUMBERS: usize = 11;

/// What a check asks for. What is not given is as core has it.
pub(crate) fn ask(
    cost: Option<f64>,
    max_wait_ms: Option<f64>,
    partial: Option<bool>,
    allow_debt: Option<bool>,
) -> Result<Ask> {
    let mut ask = match cost {
        Some(cost) => Ask::cost(convert::cost_from_f64(cost)?),
        None => Ask::default(),
    };
    if let Some(ms) = max_wait_ms {
        ask = ask.max_wait(convert::duration_from_millis("maxWaitMs", ms)?);
    }
    Ok(ask.partial(partial.unwrap_or(false)).allow_debt(allow_debt.unwrap_or(false)))
}

/// Units that are given back. What is not given is as core has it.
pub(crate) fn units(cost: Option<f64>) -> Result<u64> {
    cost.map_or(Ok(DEFAULT_COST), convert::cost_from_f64)
}

/// How long ago something was used: now, if it is not given.
pub(crate) fn age(age_ms: Option<f64>) -> Result<Duration> {
    age_ms.map_or(Ok(Duration::ZERO), |ms| convert::duration_from_millis("ageMs", ms))
}

/// A decision as the numbers that the face turns into an object, in its order.
pub(crate) fn numbers(decision: &Decision) -> [f64; NUMBERS] {
    let unlimited = decision.limit == UNLIMITED;
    let count = |number: f64| if unlimited { f64::INFINITY } else { number };
    [
        f64::from(u8::from(decision.allowed)),
        decision.granted as f64,
        convert::millis(decision.wait),
        convert::millis(decision.retry_after),
        convert::millis(decision.reset_after),
        count(decision.limit as f64),
        count(decision.remaining as f64),
        count(decision.balance as f64),
        decision.rule.map_or(-1.0, |index| index as f64),
        f64::from(u8::from(decision.dry_run)),
        decision.deciding.map_or(-1.0, |index| index as f64),
    ]
}

/// The counts of a throttle, in the order of the face.
pub(crate) fn counts(stats: &Stats) -> Vec<f64> {
    let counts = [
        stats.allowed,
        stats.refused,
        stats.dry_run,
        stats.failed_open,
        stats.clamped,
        stats.evicted,
        stats.buckets,
        stats.unreported,
    ];
    counts.iter().map(|count| *count as f64).collect()
}

/// The names of a domain's rules, in order.
pub(crate) fn rule_names(domain: &Domain) -> Vec<String> {
    domain.rules().iter().map(|rule| rule.name().to_string()).collect()
}

/// The bursts of a domain's rules, in order.
pub(crate) fn rule_limits(domain: &Domain) -> Vec<f64> {
    domain.rules().iter().map(|rule| rule.burst() as f64).collect()
}

/// The milliseconds in which the buckets of a domain's rules fill, in order.
pub(crate) fn rule_windows(domain: &Domain) -> Vec<f64> {
    domain.rules().iter().map(|rule| rule.window().as_secs_f64() * 1e3).collect()
}

/// The `code` of an error on its way to the face: the code proper, the line (0: none) and the field
/// (empty: none), with blanks between. A JavaScript error has no other place that both doors can
/// fill.
pub(crate) fn code(error: &Error) -> String {
    let line = error.line().unwrap_or(0);
    let field = error.field().unwrap_or("");
    format!("{} {line} {field}", error.kind().code())
}
