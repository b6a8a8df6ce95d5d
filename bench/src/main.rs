//! dthrottle side by side with the `governor` crate: whole decisions, hashing and clock included,
//! in one run, alternating, medians. Prints a table and writes `bench/out/core.json`.
//!
//! Times on a busy machine mean little; the ratio of two that were taken in turns means more.
#![forbid(unsafe_code)]

mod tags;

use std::error::Error;
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Instant;

use dthrottle::{Rule, Throttle};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use serde_json::{Map, Value, json};
use tags::Tags;

const ROUNDS: usize = 7;
const CHECKS: usize = 1_000_000;
/// High enough that nobody is refused: a refusal is another, shorter path.
const RATE: u32 = 1_000_000;
const BURST: u32 = 100_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    println!("whole decisions, one thread, medians of {ROUNDS} rounds of {CHECKS}");
    println!("{:<14} {:>10} {:>10} {:>7}", "tags", "governor", "dthrottle", "ratio");
    let mut ratios = Map::new();
    for (name, count, zipf) in [
        ("hot", 1, false),
        ("uniform_100k", 100_000, false),
        ("uniform_1m", 1_000_000, false),
        ("zipf_1m", 1_000_000, true),
    ] {
        let (theirs, ours) = compare(&Tags::new(count, zipf, CHECKS))?;
        let ratio = theirs / ours;
        println!("{name:<14} {theirs:>7.0} ns {ours:>7.0} ns {ratio:>6.2}x");
        ratios.insert(name.into(), json!((ratio * 100.0).round() / 100.0));
    }
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("out");
    fs::create_dir_all(&out)?;
    let report = Value::from(Map::from_iter([("ratios".to_string(), Value::from(ratios))]));
    fs::write(out.join("core.json"), serde_json::to_string_pretty(&report)? + "\n")?;
    Ok(())
}

/// Nanoseconds a check, there and here.
fn compare(tags: &Tags) -> Result<(f64, f64), Box<dyn Error>> {
    let rate = NonZeroU32::new(RATE).ok_or("a rate above zero")?;
    let burst = NonZeroU32::new(BURST).ok_or("a burst above zero")?;
    let governor: DefaultKeyedRateLimiter<String> =
        RateLimiter::keyed(Quota::per_second(rate).allow_burst(burst));
    let rule = Rule::per_second(RATE.into()).burst(BURST.into());
    let throttle = Throttle::builder().rule(rule).build()?;
    let mut times = (Vec::new(), Vec::new());
    // The first round fills the tables and is not counted.
    for round in 0..=ROUNDS {
        let theirs = time(tags, |tag| governor.check_key(tag).is_ok())?;
        let ours = time(tags, |tag| throttle.allow(tag).unwrap_or(false))?;
        if round > 0 {
            times.0.push(theirs);
            times.1.push(ours);
        }
    }
    Ok((median(times.0), median(times.1)))
}

/// Nanoseconds a check. All must be admitted: else another path is measured.
fn time(tags: &Tags, mut check: impl FnMut(&String) -> bool) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    let admitted = tags.iter().filter(|tag| check(tag)).count();
    let ns = start.elapsed().as_nanos() as f64;
    if admitted != CHECKS {
        return Err(format!("only {admitted} of {CHECKS} were admitted").into());
    }
    Ok(ns / CHECKS as f64)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
