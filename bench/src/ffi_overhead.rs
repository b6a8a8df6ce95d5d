//! The whole decision from other languages, as a multiple of the same in Rust.
//!
//! Each program prints nanoseconds a call on a hot tag: the median of its rounds. Rust is measured
//! beside each of them.

use std::process::Command;

use crate::limiters::{Result, dthrottle, median, table_for, time};
use crate::size::sized;
use crate::tags::{Spread, stream};
use crate::{checks, rounds};

/// Rust's nanoseconds and the ratio.
pub(crate) fn compare(program: &str, arguments: &[&str]) -> Result<(f64, f64)> {
    let throttle = dthrottle(table_for(1))?;
    let stream = stream(1, Spread::Uniform, checks());
    let (mut ratios, mut times) = (Vec::new(), Vec::new());
    for _ in 0..sized(3, 1) {
        let mut taken = Vec::new();
        for _ in 0..rounds() {
            taken.push(time(&stream, |tag| throttle.allow(tag).unwrap_or(false))?);
        }
        let output = Command::new(program).args(arguments).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{program}: {said}").into());
        }
        let there: f64 = String::from_utf8(output.stdout)?.trim().parse()?;
        let here = median(taken);
        ratios.push(there / here);
        times.push(there);
    }
    Ok((median(times), median(ratios)))
}
