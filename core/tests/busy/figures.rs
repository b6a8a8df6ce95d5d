//! The table of `docs/busy.md`. `make busy-figures` writes `docs/figures/busy.json`; the tests run
//! one row again.
#![allow(clippy::disallowed_methods, reason = "tests may read files")]

use std::fs;
use std::path::Path;

use dthrottle::busy::{Mode, Recover};
use serde_json::{Value, json};

use crate::model::{live, overload};
use crate::world::{Server, World};

/// These seeds were not used to choose the settings of the live throttle; those of the tests were.
const SEEDS: std::ops::RangeInclusive<u64> = 101..=110;

/// Number of clients, their demand and the server's capacity per second, how the server counts, and
/// the latency in milliseconds.
type Load = (usize, f64, f64, Server, u64);

const LOADS: [Load; 18] = [
    (4, 1000.0, 400.0, Server::Even, 20),
    (8, 1000.0, 200.0, Server::Even, 20),
    (1, 1000.0, 400.0, Server::Even, 20),
    (2, 300.0, 60.0, Server::Even, 20),
    (16, 2000.0, 1500.0, Server::Even, 20),
    (1, 1000.0, 200.0, Server::Seconds, 20),
    (4, 1000.0, 400.0, Server::Seconds, 20),
    (8, 1000.0, 200.0, Server::Seconds, 20),
    (16, 1000.0, 400.0, Server::Seconds, 20),
    (8, 300.0, 60.0, Server::Seconds, 20),
    (16, 300.0, 60.0, Server::Even, 20),
    (16, 300.0, 60.0, Server::Seconds, 20),
    (4, 1000.0, 400.0, Server::Even, 300),
    (4, 1000.0, 400.0, Server::Even, 1000),
    (1, 1000.0, 200.0, Server::Even, 300),
    (1, 1000.0, 200.0, Server::Even, 1000),
    (1, 40.0, 20.0, Server::Even, 20),
    (1, 20.0, 10.0, Server::Even, 20),
];

/// Returns the worst figures of all seeds.
fn row(load: Load, name: &str, mode: Option<Mode>) -> Value {
    let (clients, demand, capacity, server, latency_ms) = load;
    let (mut good, mut busy, mut back) = (f64::INFINITY, 0.0_f64, 0);
    for seed in SEEDS {
        let world = World { clients, demand, server, latency_ms, seed, ..World::new(mode) };
        let (one_good, one_busy, one_back) = overload(&world, capacity);
        (good, busy, back) = (good.min(one_good), busy.max(one_busy), back.max(one_back));
    }
    let round = |share: f64| (share * 1000.0).round() / 1000.0;
    json!({
        "clients": clients,
        "wanted_per_s": demand,
        "capacity_per_s": capacity,
        "server": if server == Server::Even { "evenly" } else { "in whole seconds" },
        "latency_ms": latency_ms,
        "throttle": name,
        "goodput": round(good),
        "busy": round(busy),
        "back": if back == usize::MAX { "not in 12 s".into() } else { format!("{back} s") },
    })
}

/// All loads with the live throttle, and the first one also with the document's arithmetic and
/// without a throttle.
fn rows() -> Vec<Value> {
    let mut rows: Vec<Value> = LOADS.iter().map(|load| row(*load, "live", live())).collect();
    rows.insert(1, row(LOADS[0], "document", Some(Mode::Document(Recover::Rate(3.0)))));
    rows.insert(2, row(LOADS[0], "none", None));
    rows
}

#[test]
#[ignore = "slow; run by make busy-figures"]
fn all_rows_are_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("busy.json"), Value::from(rows()).to_string()).unwrap();
}

#[test]
fn the_committed_row_equals_a_new_run() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/figures/busy.json");
    let figures: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let again = row(LOADS[3], "live", live());
    // Parsed from text like the committed figures, so that equal digits are equal numbers.
    let again: Value = serde_json::from_str(&again.to_string()).unwrap();
    assert_eq!(
        figures["rows"][5], again,
        "docs/figures/busy.json is out of date; run make busy-figures"
    );
}
