//! `dthrottle simulate busy`: the tables of the document, to the digit.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::fs;
use std::process::{Command, Output};

fn simulate(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dthrottle"));
    command.args(["simulate", "busy"]).args(words).output().unwrap()
}

fn prints(words: &[&str]) -> String {
    let output = simulate(words);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.as_str()), (Some(0), ""), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The document's tables, without the arrows that its author put beside them.
const STEADY: &str = include_str!("busy/steady.txt");
const FLAPPY: &str = include_str!("busy/flappy.txt");

#[test]
fn the_tables_of_the_document_to_the_digit() {
    assert_eq!(prints(&["steady"]), STEADY);
    assert_eq!(prints(&["flappy"]), FLAPPY);
}

#[test]
fn one_way_to_recover_is_one_half_of_the_table() {
    for (pattern, table) in [("steady", STEADY), ("flappy", FLAPPY)] {
        let at = table.find("started with recover_value").unwrap();
        assert_eq!(prints(&[pattern, "--recover-rate", "3"]), table[..at]);
        assert_eq!(prints(&[pattern, "--recover-value", "200"]), table[at..]);
    }
}

/// The document does not show these two: by its arithmetic, worked out by hand.
#[test]
fn the_other_patterns() {
    let grow = prints(&["linear_grow", "--recover-rate", "3"]);
    let lines: Vec<&str> = grow.lines().take(5).collect();
    let expected = [
        "started with recover_rate: 3",
        "start rps=100 (linear_grow) throttled=0 busy=0 (linear_grow) limit=9999999",
        "    --- time=1 rps=200 throttled=0 busy=100 limit=9999999",
        // 9999999 * 4 / 2^20
        "    --- time=2 rps=38 throttled=262 busy=38 limit=38",
        "    --- time=3 rps=0 throttled=400 busy=0 limit=0",
    ];
    assert_eq!(lines, expected);
    assert!(grow.ends_with("converged at time=16, speed=6\n"), "{grow}");
    let decrease = prints(&["linear_decrease", "--recover-value", "200"]);
    let lines: Vec<&str> = decrease.lines().skip(1).take(5).collect();
    let expected = [
        "start rps=5000 (linear_decrease) throttled=0 busy=3000 (steady) limit=9999999",
        "    --- time=1 rps=4900 throttled=0 busy=3000 limit=9999999",
        // (9999999 + 200) / 2^20
        "    --- time=2 rps=9 throttled=4791 busy=9 limit=9",
        "    --- time=3 rps=0 throttled=4700 busy=0 limit=0",
        "    --- time=4 rps=200 throttled=4400 busy=200 limit=200",
    ];
    assert_eq!(lines, expected);
    for pattern in ["linear_grow", "linear_decrease"] {
        assert_eq!(prints(&[pattern]).matches("started with").count(), 2);
    }
}

#[test]
fn it_draws_rps_throttled_busy_and_limit() {
    let path = std::env::temp_dir().join(format!("dthrottle-busy-{}.svg", std::process::id()));
    let table = prints(&["flappy", "--svg", path.to_str().unwrap()]);
    let svg = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(table, FLAPPY);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("<polyline ").count(), 2 * 4);
    for name in ["rps", "throttled", "busy", "limit"] {
        assert_eq!(svg.matches(&format!(">{name}</text>")).count(), 2, "{name}");
    }
    // The seconds of the two tables, four points each; all inside.
    let points: Vec<f64> = svg
        .split("points=\"")
        .skip(1)
        .flat_map(|rest| rest.split('"').next().unwrap().split([' ', ',']))
        .map(|number| number.parse().unwrap())
        .collect();
    assert_eq!(points.len(), 2 * 4 * (18 + 30));
    assert!(points.iter().all(|number| (0.0..=640.0).contains(number)));
}

#[test]
fn what_cannot_be_is_told() {
    let wrong: [(&[&str], &str); 6] = [
        (&[], "<PATTERN>"),
        (&["wobbly"], "steady, flappy, linear_grow, linear_decrease"),
        (&["steady", "--recover-rate", "0"], "write a number above 0"),
        (&["steady", "--recover-value", "NaN"], "write a number above 0"),
        (&["steady", "--recover-value", "1", "--recover-rate", "1"], "cannot be used with"),
        (&["steady", "--svg", "/nowhere/at/all.svg"], "cannot write /nowhere/at/all.svg"),
    ];
    for (words, message) in wrong {
        let output = simulate(words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_ne!(output.status.code(), Some(0), "{words:?}");
        assert!(output.stdout.is_empty() && said.contains(message), "{words:?}: {said}");
    }
}
