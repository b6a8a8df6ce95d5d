//! The committed figures are those of this code: two rows are run again, and the plots are those that
//! the figures give. `make sim` writes all of them anew.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::fs;
use std::path::{Path, PathBuf};

use dthrottle_sim::plots::plots;
use dthrottle_sim::report::Row;
use dthrottle_sim::table::scenarios;
use dthrottle_sim::world::run;
use serde_json::Value;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

fn figures() -> Value {
    let text = fs::read_to_string(docs().join("figures/simulation.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A seed determines everything, so the rows must be the same to the last digit.
#[test]
fn two_rows_of_the_table_are_those_of_a_run() {
    let figures = figures();
    for (name, nodes) in [("10x overload", 10), ("delay 10 to 40 ms", 2)] {
        let scenario = scenarios().into_iter().find(|it| it.name == name && it.nodes == nodes);
        let scenario = scenario.unwrap();
        let row = Row::new(&scenario, &run(&scenario)).to_json();
        // Parsed from text as the others are, so that equal digits are equal numbers.
        let row: Value = serde_json::from_str(&row.to_string()).unwrap();
        let rows = figures["rows"].as_array().unwrap();
        let kept = rows.iter().find(|row| row["scenario"] == name && row["nodes"] == nodes);
        assert_eq!(kept, Some(&row), "docs/figures/simulation.json is not of this code: make sim");
    }
}

#[test]
fn plots_are_drawn_from_the_figures() {
    for (name, svg) in plots(&figures()) {
        let drawn = fs::read_to_string(docs().join("plots").join(name)).unwrap();
        assert!(drawn == svg, "docs/plots/{name} is not of docs/figures/simulation.json: make sim");
    }
}
