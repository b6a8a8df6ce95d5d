//! The two limiters that are compared, with the same limit.

use std::error::Error;
use std::num::NonZeroU32;
use std::time::Instant;

use dthrottle::{Rule, TableConfig, Throttle};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::tags::tag;

/// High enough that no check is refused, because a refusal takes a shorter code path.
const RATE: u32 = 1_000_000;
const BURST: u32 = 100_000_000;

pub(crate) type Governor = DefaultKeyedRateLimiter<String>;
pub(crate) type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

pub(crate) fn governor() -> Result<Governor> {
    let rate = NonZeroU32::new(RATE).ok_or("a rate above zero")?;
    let burst = NonZeroU32::new(BURST).ok_or("a burst above zero")?;
    Ok(RateLimiter::keyed(Quota::per_second(rate).allow_burst(burst)))
}

pub(crate) fn dthrottle(table: TableConfig) -> Result<Throttle> {
    let rule = Rule::per_second(RATE.into()).burst(BURST.into());
    Ok(Throttle::builder().rule(rule).table(table).build()?)
}

/// Returns a table in which these tags use six tenths of the slots, the intended load.
pub(crate) fn table_for(tags: u32) -> TableConfig {
    TableConfig::anonymous().tags(tags.max(1 << 20).into())
}

/// Checks every tag once, so that all have buckets.
pub(crate) fn fill(tags: u32, mut check: impl FnMut(&String) -> bool) -> Result<()> {
    let admitted = (0..tags).filter(|number| check(&tag(*number))).count();
    all_admitted(admitted, tags as usize)
}

/// Returns nanoseconds per check. Fails if a check is refused, because that is another code path.
pub(crate) fn time(tags: &[String], mut check: impl FnMut(&String) -> bool) -> Result<f64> {
    let start = Instant::now();
    let admitted = tags.iter().filter(|tag| check(tag)).count();
    let ns = start.elapsed().as_nanos() as f64;
    all_admitted(admitted, tags.len())?;
    Ok(ns / tags.len() as f64)
}

fn all_admitted(admitted: usize, checks: usize) -> Result<()> {
    match admitted == checks {
        true => Ok(()),
        false => Err(format!("only {admitted} of {checks} checks were admitted").into()),
    }
}

pub(crate) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
