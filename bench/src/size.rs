//! How much is measured: everything, or a little of each part where `BENCH_SMALL` is set, as
//! `make test-bench` does to see that every benchmark still runs and that its own checks pass.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use serde_json::Value;

/// Whether this is the small form.
pub(crate) fn is_small() -> bool {
    env::var_os("BENCH_SMALL").is_some()
}

/// One of two numbers, by the form.
pub(crate) fn sized<T>(full: T, small: T) -> T {
    if is_small() { small } else { full }
}

/// Writes a report: `bench/out/` has those of the full form only.
pub(crate) fn write(name: &str, report: &Value) -> Result<(), Box<dyn Error>> {
    let out = Path::new(sized("bench/out", "target/bench/small"));
    fs::create_dir_all(out)?;
    Ok(fs::write(out.join(name), serde_json::to_string_pretty(report)? + "\n")?)
}
