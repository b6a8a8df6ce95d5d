//! Compares dthrottle with the `governor` crate. Both run alternately in one process; a measurement
//! is a whole decision, including hashing and clock, and the median of several rounds. Also
//! measures batches, the exchange, and the bindings for other languages.
//!
//! Prints a table and writes `bench/out/core.json` and `bench/out/cluster.json`. Arguments select
//! parts: single_thread, two_workers, table_ops, ffi_overhead, cluster. `BENCH_SMALL` makes a short
//! run, see `size.rs`.
//!
//! On a busy machine times vary. The ratio of two alternating measurements varies less.
#![forbid(unsafe_code)]

mod cluster;
mod ffi_overhead;
mod limiters;
mod single_thread;
mod size;
mod table_ops;
mod tags;
mod two_workers;

use std::env;

use limiters::Result;
use serde_json::{Map, Value, json};
use size::{sized, write};
use tags::Spread;

/// The number of rounds.
pub(crate) fn rounds() -> usize {
    sized(7, 1)
}

/// The number of checks in a round.
pub(crate) fn checks() -> usize {
    sized(1_000_000, 10_000)
}

/// Returns `full`, or at most 10,000 in a short run.
pub(crate) fn tags(full: u32) -> u32 {
    sized(full, full.min(10_000))
}

/// Programs that measure the same call in other languages: name, program, arguments.
const LANGUAGES: [(&str, &str, &[&str]); 3] = [
    ("c", "target/bench/c_hot", &[]),
    ("python", ".venv/bin/python", &["bench/python_hot.py"]),
    ("node", "node", &["bench/node_hot.js"]),
];

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [child, dir, tags] = arguments.as_slice()
        && child == two_workers::CHILD
    {
        return two_workers::child(dir, tags);
    }
    let wanted = |part: &str| arguments.is_empty() || arguments.iter().any(|name| name == part);
    let mut report = Map::new();
    println!("medians of {} rounds of {} decisions\n", rounds(), checks());
    if wanted("single_thread") {
        let (ratios, figures) = single_thread()?;
        report.insert("ratios".into(), ratios);
        report.insert("figures".into(), figures);
    }
    if wanted("two_workers") {
        two_workers()?;
    }
    if wanted("table_ops") {
        table_ops(&mut report)?;
    }
    if wanted("ffi_overhead") {
        ffi_overhead(&mut report)?;
    }
    if wanted("cluster") {
        write("cluster.json", &exchange()?)?;
    }
    if !arguments.is_empty() {
        return Ok(());
    }
    write("core.json", &Value::from(report))
}

fn exchange() -> Result<Value> {
    let encoded = cluster::encode()?;
    println!("\n{:<28} {:>7.1} million entries/s", "reports written, sealed", encoded / 1e6);
    let (applied, bytes) = cluster::apply()?;
    println!("{:<28} {:>7.1} million entries/s", "reports opened, applied", applied / 1e6);
    println!("{:<28} {bytes:>10.2}", "bytes an entry");
    let slowdown = cluster::slowdown()?;
    println!("{:<28} {slowdown:>9.2}x a million entries/s arriving", "a check is slower by");
    let idle = cluster::idle()?;
    println!("{:<28} {:>9.2}% of a core", "an idle node takes", idle * 100.0);
    Ok(json!({
        "encode_per_s": encoded.round(),
        "apply_per_s": applied.round(),
        "bytes_per_entry": rounded(bytes),
        "check_slowdown": rounded(slowdown),
        "idle_cpu": idle,
    }))
}

/// Returns the ratio of each case, and the nanoseconds.
fn single_thread() -> Result<(Value, Value)> {
    println!("{:<28} {:>10} {:>10} {:>7}", "one thread, tags", "governor", "dthrottle", "ratio");
    let (mut ratios, mut figures) = (Map::new(), Map::new());
    for (name, tags, spread) in [
        ("hot", 1, Spread::Uniform),
        ("uniform_100k", 100_000, Spread::Uniform),
        ("uniform_1m", 1_000_000, Spread::Uniform),
        ("zipf_1m", 1_000_000, Spread::Zipf),
        ("uniform_10m", 10_000_000, Spread::Uniform),
    ] {
        let (theirs, ours) = single_thread::compare(crate::tags(tags), spread)?;
        let ratio = theirs / ours;
        println!("{name:<28} {theirs:>7.0} ns {ours:>7.0} ns {ratio:>6.2}x");
        ratios.insert(name.into(), rounded(ratio));
        figures.insert(format!("governor_{name}_ns"), rounded(theirs));
        figures.insert(format!("{name}_ns"), rounded(ours));
    }
    Ok((Value::from(ratios), Value::from(figures)))
}

fn two_workers() -> Result<()> {
    println!("\n{:<28} {:>10} {:>10} {:>10}", "two workers", "governor", "threads", "processes");
    for (name, tags) in [("hot", 1), ("uniform_1m", 1_000_000)] {
        let two_workers::Times { governor_threads, threads, processes } =
            two_workers::compare(crate::tags(tags))?;
        println!("{name:<28} {governor_threads:>7.0} ns {threads:>7.0} ns {processes:>7.0} ns");
    }
    println!();
    Ok(())
}

fn table_ops(report: &mut Map<String, Value>) -> Result<()> {
    let bytes = table_ops::bytes_per_tag()?;
    println!("{:<28} {bytes:>10.2}", "bytes a tag");
    report.insert("bytes_per_tag".into(), rounded(bytes));
    let (single, batch) = table_ops::batch()?;
    let ratio = batch / single;
    println!("{:<28} {batch:>7.0} ns, one by one {single:.0} ns", "64 at once, 10m tags");
    report.insert("batch_ratio".into(), rounded(ratio));
    let (applied, drained) = table_ops::exchange()?;
    println!("{:<28} {:>7.1} million/s", "peers' entries applied", applied / 1e6);
    println!("{:<28} {:>7.1} million/s", "own entries drained", drained / 1e6);
    report.insert("apply_per_s".into(), json!(applied.round()));
    report.insert("drain_per_s".into(), json!(drained.round()));
    Ok(())
}

fn ffi_overhead(report: &mut Map<String, Value>) -> Result<()> {
    for (name, program, arguments) in LANGUAGES {
        let (ns, ratio) = ffi_overhead::compare(program, arguments)?;
        println!("{:<28} {ns:>7.0} ns {ratio:>6.2} times Rust", format!("hot, from {name}"));
        report.insert(format!("{name}_ratio"), rounded(ratio));
    }
    Ok(())
}

fn rounded(value: f64) -> Value {
    json!((value * 100.0).round() / 100.0)
}
