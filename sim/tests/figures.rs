//! Checks that the committed figures are up to date: two rows are computed again, and the plots are
//! drawn from the figures. `make sim` writes all of them.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

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

/// A seed determines everything, so the rows must be equal in every digit.
#[test]
fn two_committed_rows_equal_a_new_run() {
    let figures = figures();
    for (name, nodes) in [("10x overload", 10), ("delay 10 to 40 ms", 2)] {
        let scenario = scenarios().into_iter().find(|it| it.name == name && it.nodes == nodes);
        let scenario = scenario.unwrap();
        let row = Row::new(&scenario, &run(&scenario)).to_json();
        // Parsed from text like the committed rows, so that equal digits are equal numbers.
        let row: Value = serde_json::from_str(&row.to_string()).unwrap();
        let rows = figures["rows"].as_array().unwrap();
        let kept = rows.iter().find(|row| row["scenario"] == name && row["nodes"] == nodes);
        assert_eq!(kept, Some(&row), "docs/figures/simulation.json is out of date; run make sim");
    }
}

#[test]
fn committed_plots_are_drawn_from_the_committed_figures() {
    for (name, svg) in plots(&figures()) {
        let drawn = fs::read_to_string(docs().join("plots").join(name)).unwrap();
        assert!(drawn == svg, "docs/plots/{name} is out of date; run make sim");
    }
}
