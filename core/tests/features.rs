//! Compares the number of crates that each feature compiles with README.md.
#![allow(clippy::disallowed_types, reason = "it runs cargo")]

use std::collections::BTreeSet;
use std::process::Command;

/// The number of crates that a build with these features compiles on 64-bit Linux, including this
/// one.
fn crates(features: &str) -> usize {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--package", "dthrottle", "--edges", "no-dev"])
        .args(["--target", "x86_64-unknown-linux-gnu", "--prefix", "none", "--no-dedupe"])
        .args(["--no-default-features", "--features", features])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().collect::<BTreeSet<_>>().len()
}

/// The rows of the table in the README: features and their number of crates.
fn documented() -> Vec<(String, usize)> {
    let rows = include_str!("../README.md").lines().filter(|line| line.starts_with("| "));
    let rows = rows.filter_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (features, count) = (cells.next()?, cells.next()?.parse().ok()?);
        Some((features.replace('`', ""), count))
    });
    rows.collect()
}

#[test]
fn the_readme_has_the_number_of_crates_of_every_feature() {
    let documented = documented();
    for (features, count) in &documented {
        let set = match features.as_str() {
            "none" => "",
            "all" => "shared,cluster,config,web,busy,serde",
            one => one,
        };
        assert_eq!(crates(set), *count, "crates with the feature set {features}");
    }
    let names: Vec<_> = documented.iter().map(|(features, _)| features.as_str()).collect();
    assert_eq!(names, ["none", "shared", "cluster", "config", "web", "busy", "serde", "all"]);
}
