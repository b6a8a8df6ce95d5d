//! Compares a call from another language with the same call in Rust.
//!
//! Each program prints nanoseconds per call for one tag, the median of its rounds. Rust is measured
//! before each run of a program.

use std::process::Command;

use crate::limiters::{Result, dthrottle, median, table_for, time};
use crate::size::sized;
use crate::tags::{Spread, stream};
use crate::{checks, rounds};

/// Returns nanoseconds per call of the program, and their ratio to Rust.
pub(crate) fn compare(program: &str, arguments: &[&str]) -> Result<(f64, f64)> {
    let throttle = dthrottle(table_for(1))?;
    let stream = stream(1, Spread::Uniform, checks());
    let (mut ratios, mut times) = (Vec::new(), Vec::new());
    for _ in 0..sized(3, 1) {
        let mut rust_times = Vec::new();
        for _ in 0..rounds() {
            rust_times.push(time(&stream, |tag| throttle.allow(tag).unwrap_or(false))?);
        }
        let output = Command::new(program).args(arguments).output()?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{program}: {stderr}").into());
        }
        let program_ns: f64 = String::from_utf8(output.stdout)?.trim().parse()?;
        let rust_ns = median(rust_times);
        ratios.push(program_ns / rust_ns);
        times.push(program_ns);
    }
    Ok((median(times), median(ratios)))
}
