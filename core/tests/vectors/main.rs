//! The shared vectors of `tests/vectors/`, which every language runs.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(clippy::disallowed_methods, reason = "tests may call the operating system")]

mod configs;
mod inputs;
mod sequences;
mod web;

use std::path::Path;
use std::time::Duration;

use dthrottle::{CheckOptions, Config, Decision, Domain, ManualClock, Result, Throttle};
use serde_json::Value as Json;

/// Reads and parses a vector file.
fn vectors(name: &str) -> Json {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors").join(name);
    let text = std::fs::read_to_string(path).expect("the vectors are there");
    serde_json::from_str(&text).expect("the vectors are JSON")
}

fn list(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}

fn build(config: Config, clock: &ManualClock) -> Result<Throttle> {
    dthrottle::Builder::from(config).clock(clock.clone()).build()
}

fn nanos(json: &Json, key: &str) -> Duration {
    Duration::from_nanos(json[key].as_u64().unwrap_or(0))
}

/// The result of a call.
enum Answer {
    Decision(Decision),
    Allowed(bool),
    Nothing,
}

/// Makes one call. The caller has read the times, because their units differ between files.
fn call(
    domain: &Domain,
    name: &str,
    tag: &[u8],
    args: &Json,
    max_delay: Duration,
    age: Duration,
) -> Result<Answer> {
    let cost = args.get("cost").map(|cost| cost.as_u64().expect("a cost that Rust can express"));
    let options = cost.map_or_else(CheckOptions::default, CheckOptions::cost);
    let options = options.max_delay(max_delay).partial(args["partial"] == true);
    let options = options.allow_debt(args["allow_debt"] == true);
    Ok(match name {
        "check" => Answer::Decision(domain.check_with(tag, options)?),
        "peek" => Answer::Decision(domain.peek_with(tag, options)?),
        "allow" => Answer::Allowed(domain.allow_with(tag, options)?),
        "refund" => {
            domain.refund(tag, cost.unwrap_or(dthrottle::DEFAULT_COST))?;
            Answer::Nothing
        }
        "reset" => {
            domain.reset(tag)?;
            Answer::Nothing
        }
        "charge_local" => {
            domain.charge_local(tag, cost.expect("a cost"), age)?;
            Answer::Nothing
        }
        other => panic!("unknown call {other}"),
    })
}

/// Compares a result with the one that a vector expects.
fn compare(domain: &Domain, answer: &Answer, expect: &Json) -> std::result::Result<(), String> {
    let decision = match answer {
        Answer::Nothing => return Ok(()),
        Answer::Allowed(allowed) if expect == allowed => return Ok(()),
        Answer::Allowed(allowed) => return Err(format!("allowed {allowed}, expected {expect}")),
        Answer::Decision(decision) => decision,
    };
    let fields = expect.as_object().ok_or("a decision needs expected fields")?;
    for (field, expected) in fields {
        let count = |value: u64| match value {
            dthrottle::UNLIMITED => Json::from("unlimited"),
            value => Json::from(value),
        };
        let close = |time: Duration| {
            let expected = expected.as_f64().unwrap_or(f64::NAN);
            (time.as_nanos() as f64 - expected).abs() <= 2.0 + expected * 1e-12
        };
        let equal = match field.as_str() {
            "allowed" => decision.allowed == *expected,
            "dry_run" => decision.dry_run == *expected,
            "granted" => decision.granted == *expected,
            "limit" => count(decision.limit) == *expected,
            "remaining" => count(decision.remaining) == *expected,
            "balance" if decision.balance == i64::MAX => *expected == "unlimited",
            "balance" => decision.balance == *expected,
            "rule" => Json::from(domain.refused_by(decision)) == *expected,
            "delay_ns" => close(decision.delay),
            "retry_after_ns" => close(decision.retry_after),
            "reset_after_ns" => close(decision.reset_after),
            other => return Err(format!("no field {other}")),
        };
        if !equal {
            return Err(format!("{field} should be {expected} in {decision:?}"));
        }
    }
    Ok(())
}
