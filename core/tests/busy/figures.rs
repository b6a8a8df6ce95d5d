//! The table of `docs/busy.md`: `make busy-figures` writes `docs/figures/busy.json`, and a row of it is
//! run again with the other tests.
#![allow(clippy::disallowed_methods, reason = "tests may read files")]

use std::fs;
use std::path::Path;

use dthrottle::busy::{Mode, Recover};
use serde_json::{Value, json};

use crate::model::{live, overload};
use crate::world::{Server, World};

/// No seed here had a part in choosing the settings of the live throttle; those of the tests had.
const SEEDS: std::ops::RangeInclusive<u64> = 101..=110;

/// Clients, what all of them want and what the server can do in a second, and how it answers.
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

/// The worst figures of all seeds.
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

/// Each load with the live throttle; the first also with the document's arithmetic, and without any.
fn rows() -> Vec<Value> {
    let mut rows: Vec<Value> = LOADS.iter().map(|load| row(*load, "live", live())).collect();
    rows.insert(1, row(LOADS[0], "document", Some(Mode::Document(Recover::Rate(3.0)))));
    rows.insert(2, row(LOADS[0], "none", None));
    rows
}

#[test]
#[ignore = "takes long; run by make busy-figures"]
fn all_rows_are_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("busy.json"), Value::from(rows()).to_string()).unwrap();
}

#[test]
fn a_row_of_the_table_is_that_of_a_run() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/figures/busy.json");
    let figures: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let again = row(LOADS[3], "live", live());
    // Parsed from text as the others are, so that equal digits are equal numbers.
    let again: Value = serde_json::from_str(&again.to_string()).unwrap();
    assert_eq!(figures["rows"][5], again, "not the figures of this code: make busy-figures");
}
