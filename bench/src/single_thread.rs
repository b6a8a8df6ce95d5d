//! Compares governor and dthrottle in one thread, alternating, with the same stream of tags.

use crate::limiters::{Result, dthrottle, fill, governor, median, table_for, time};
use crate::tags::{Spread, stream};
use crate::{checks, rounds};

/// Returns nanoseconds per check of governor and of dthrottle.
pub(crate) fn compare(tags: u32, spread: Spread) -> Result<(f64, f64)> {
    let governor = governor()?;
    let throttle = dthrottle(table_for(tags))?;
    fill(tags, |tag| governor.check_key(tag).is_ok())?;
    fill(tags, |tag| throttle.allow(tag).unwrap_or(false))?;
    let stream = stream(tags, spread, checks());
    let mut times = (Vec::new(), Vec::new());
    // The first round warms up and is not counted.
    for round in 0..=rounds() {
        let theirs = time(&stream, |tag| governor.check_key(tag).is_ok())?;
        let ours = time(&stream, |tag| throttle.allow(tag).unwrap_or(false))?;
        if round > 0 {
            times.0.push(theirs);
            times.1.push(ours);
        }
    }
    Ok((median(times.0), median(times.1)))
}
