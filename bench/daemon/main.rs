//! Compares dthrottled with a local Redis and with an echo server. All listen on Unix sockets, and
//! one client thread measures them alternately; results are medians. `make bench-daemon` prints a
//! table and writes `bench/out/daemon.json`. With the arguments `echo PATH`, this program is the
//! echo server.
//!
//! With pipelining, client and server may use both cores. For round trips, both are bound to one
//! core, because a wake-up on another core costs many times more; that is measured separately.
#![forbid(unsafe_code)]

mod echo;
mod load;
mod memory;
mod servers;
#[path = "../src/size.rs"]
mod size;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use load::{Script, pipelined, round_trip};
use serde_json::{Value, json};
use servers::Server;
use size::sized;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// The number of pipelined commands on a connection.
const DEPTH: usize = 256;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [kind, path] = arguments.as_slice()
        && kind == echo::ARGUMENT
    {
        return Ok(echo::serve(Path::new(path))?);
    }
    let dir = env::temp_dir().join(format!("dthrottle-bench-{}", std::process::id()));
    fs::create_dir_all(&dir)?;
    let report = measure(&dir);
    fs::remove_dir_all(&dir)?;
    size::write("daemon.json", &report?)
}

fn measure(dir: &Path) -> Result<Value> {
    let throughput = throughput(dir)?;
    let [ours, gcra, incr, echo] = throughput;
    println!("{:<34} {:>12}", "pipelined by 256, 8 connections", "decisions/s");
    for (name, rate) in
        [("dthrottled", ours), ("Redis, GCRA script", gcra), ("Redis, INCR", incr), ("echo", echo)]
    {
        println!("{name:<34} {rate:>12.0}");
    }
    let same = trips(dir, true)?;
    let apart = trips(dir, false)?;
    println!("\n{:<34} {:>9} {:>9}", "round trip, median", "one core", "two cores");
    for (i, name) in ["dthrottled", "Redis, INCR"].into_iter().enumerate() {
        println!("{name:<34} {:>6.1} us {:>6.1} us", same[i] * 1e6, apart[i] * 1e6);
    }
    let connection = memory::of_a_connection(dir)?;
    let (table, process) = memory::of_many_tags(dir)?;
    println!("\n{:<34} {connection:>9} bytes", "an idle connection");
    println!("{:<34} {:>9.0} MB", "memory of all tags", (table + process) as f64 / 1e6);
    let rounded = |ratio: f64| json!((ratio * 100.0).round() / 100.0);
    Ok(json!({
        "ratios": {
            "redis_gcra": rounded(ours / gcra),
            "redis_incr": rounded(ours / incr),
            "echo": rounded(ours / echo),
            "round_trip": rounded(same[0] / same[1]),
        },
        "per_s": { "dthrottled": ours.round(), "redis_gcra": gcra.round(), "redis_incr": incr.round(), "echo": echo.round() },
        "round_trip_us": {
            "placement": "client and server on one core; two_cores: one each",
            "dthrottled": rounded(same[0] * 1e6),
            "redis_incr": rounded(same[1] * 1e6),
            "two_cores": { "dthrottled": rounded(apart[0] * 1e6), "redis_incr": rounded(apart[1] * 1e6) },
        },
        "bytes_per_connection": connection,
        "bytes_of_10m_tags": { "table": table, "process": process },
    }))
}

/// Returns decisions per second of dthrottled, a GCRA script, INCR, and the echo server.
fn throughput(dir: &Path) -> Result<[f64; 4]> {
    let daemon = Server::daemon(dir, None)?;
    let redis = Server::redis(dir, None)?;
    let echo = Server::echo(dir, None)?;
    let scripts = [
        (&daemon, Script::lines(DEPTH)),
        (&redis, Script::gcra(&redis.load_gcra()?, DEPTH)),
        (&redis, Script::incr(DEPTH)),
        (&echo, Script::echo(DEPTH)),
    ];
    let mut rates: [Vec<f64>; 4] = Default::default();
    for _ in 0..sized(5, 1) {
        for (i, (server, script)) in scripts.iter().enumerate() {
            rates[i].push(pipelined(&server.socket, script)?);
        }
    }
    Ok(rates.map(median))
}

/// Returns seconds per round trip of dthrottled and of INCR.
fn trips(dir: &Path, same_core: bool) -> Result<[f64; 2]> {
    let core = usize::from(!same_core);
    let daemon = Server::daemon(dir, Some(core))?;
    let redis = Server::redis(dir, Some(core))?;
    let (lines, incr) = (Script::lines(1), Script::incr(1));
    let mut times: [Vec<f64>; 2] = Default::default();
    for _ in 0..sized(5, 1) {
        times[0].push(round_trip(&daemon.socket, &lines)?);
        times[1].push(round_trip(&redis.socket, &incr)?);
    }
    Ok(times.map(median))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
