//! Selects a full or a short run. `make test-bench` sets `BENCH_SMALL` for a short run of every
//! benchmark, which checks only that it works.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use serde_json::Value;

/// Whether this is a short run.
pub(crate) fn is_small() -> bool {
    env::var_os("BENCH_SMALL").is_some()
}

/// Returns `full`, or `small` in a short run.
pub(crate) fn sized<T>(full: T, small: T) -> T {
    if is_small() { small } else { full }
}

/// Writes a report to `bench/out/`, or to `target/bench/small/` in a short run.
pub(crate) fn write(name: &str, report: &Value) -> Result<(), Box<dyn Error>> {
    let out = Path::new(sized("bench/out", "target/bench/small"));
    fs::create_dir_all(out)?;
    Ok(fs::write(out.join(name), serde_json::to_string_pretty(report)? + "\n")?)
}
