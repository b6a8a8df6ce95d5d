//! `dthrottle simulate busy` prints exactly the tables of the document.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::fs;
use std::process::{Command, Output};

fn simulate(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dthrottle"));
    command.args(["simulate", "busy"]).args(words).output().unwrap()
}

fn prints(words: &[&str]) -> String {
    let output = simulate(words);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), printed.as_str()), (Some(0), ""), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The document's tables, without the arrows that its author put beside them.
const STEADY: &str = include_str!("busy/steady.txt");
const FLAPPY: &str = include_str!("busy/flappy.txt");
/// The document does not show these two. Another program computed them.
const GROW: &str = include_str!("busy/linear_grow.txt");
const DECREASE: &str = include_str!("busy/linear_decrease.txt");

#[test]
fn steady_and_flappy_print_the_tables_of_the_document() {
    assert_eq!(prints(&["steady"]), STEADY);
    assert_eq!(prints(&["flappy"]), FLAPPY);
}

#[test]
fn steady_is_the_default_pattern() {
    assert_eq!(prints(&[]), STEADY);
    let at = STEADY.find("started with recover_value").unwrap();
    assert_eq!(prints(&["--recover-rate", "3"]), STEADY[..at]);
}

#[test]
fn an_option_to_recover_prints_only_that_half_of_the_table() {
    let both = [("steady", STEADY), ("flappy", FLAPPY)];
    let others = [("linear_grow", GROW), ("linear_decrease", DECREASE)];
    for (pattern, table) in both.into_iter().chain(others) {
        let at = table.find("started with recover_value").unwrap();
        assert_eq!(prints(&[pattern, "--recover-rate", "3"]), table[..at]);
        assert_eq!(prints(&[pattern, "--recover-value", "200"]), table[at..]);
    }
}

#[test]
fn the_linear_patterns_print_the_tables_of_another_program() {
    assert_eq!(prints(&["linear_grow"]), GROW);
    assert_eq!(prints(&["linear_decrease"]), DECREASE);
}

#[test]
fn the_plot_has_a_line_for_rps_throttled_busy_and_limit() {
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
    // The tables have 18 and 30 seconds. All points are inside the picture.
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
fn invalid_arguments_are_errors_that_say_what_is_right() {
    let wrong: [(&[&str], &str); 7] = [
        (&["wobbly"], "steady, flappy, linear_grow, linear_decrease"),
        (&["steady", "--recover-rate", "0"], "must be above 0"),
        (&["steady", "--recover-rate", "-3"], "must be above 0"),
        (&["steady", "--recover-value", "-200"], "must be above 0"),
        (&["steady", "--recover-value", "NaN"], "must be above 0"),
        (&["steady", "--recover-value", "1", "--recover-rate", "1"], "cannot be used with"),
        (&["steady", "--svg", "/nowhere/at/all.svg"], "cannot write /nowhere/at/all.svg"),
    ];
    for (words, message) in wrong {
        let output = simulate(words);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_ne!(output.status.code(), Some(0), "{words:?}");
        assert!(output.stdout.is_empty() && printed.contains(message), "{words:?}: {printed}");
    }
}
