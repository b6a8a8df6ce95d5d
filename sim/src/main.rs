//! The command-line program. Without arguments it prints its usage.

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use dthrottle_sim::outcome::Outcome;
use dthrottle_sim::properties::check;
use dthrottle_sim::report::{Row, heading, json, line};
use dthrottle_sim::scenario::Scenario;
use dthrottle_sim::soak::soak;
use dthrottle_sim::world::run;
use dthrottle_sim::{MS, SEC, bound, parallel, plots, random, series, table};

const USAGE: &str = "\
dthrottle-sim run [NAME]       prints the table of all scenarios, or of those whose names contain NAME
dthrottle-sim plots            draws docs/plots/ from docs/figures/simulation.json
dthrottle-sim soak N [FIRST]   runs N random scenarios and checks all properties
dthrottle-sim one SEED         shows one random scenario in detail";
const OUT: &str = "sim/out";
const FIGURES: &str = "docs/figures/simulation.json";
const PLOTS: &str = "docs/plots";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["run"] => show_table(None),
        ["run", name] => show_table(Some(name)),
        ["plots"] => draw(),
        ["soak", count] => number(count).and_then(|count| run_seeds(0, count)),
        ["soak", count, first] => number(count).and_then(|count| run_seeds(number(first)?, count)),
        ["one", seed] => number(seed).and_then(|seed| show(&random::scenario(seed))),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a number, got {text:?}\n{USAGE}"))
}

/// Runs the scenarios of the table. Without a name, also writes their figures, and those of the
/// plots that need separate runs.
fn show_table(name: Option<&str>) -> Result<(), String> {
    let mut scenarios = table::scenarios();
    scenarios.retain(|scenario| name.is_none_or(|name| scenario.name.contains(name)));
    // The slowest scenarios start first, so that all cores finish at about the same time.
    let mut order: Vec<usize> = (0..scenarios.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(scenarios[*i].nodes));
    let mut results = parallel::each(&order, |i| {
        let scenario = &scenarios[*i];
        let outcome = run(scenario);
        eprint!(".");
        (*i, Row::new(scenario, &outcome), check(scenario, &outcome))
    });
    eprintln!();
    results.sort_by_key(|(i, _, _)| *i);
    println!("{}", heading());
    let mut broken = 0;
    for (_, row, violations) in &results {
        println!("{}", line(row));
        broken += violations.len();
        violations.iter().for_each(|violation| println!("    {violation}"));
    }
    if name.is_none() {
        let rows: Vec<Row> = results.into_iter().map(|(_, row, _)| row).collect();
        write(OUT, "summary.json", &json(&rows))?;
        write(OUT, "series.json", &format!("{}\n", series::series()))?;
    }
    if broken > 0 { Err(format!("{broken} properties are violated")) } else { Ok(()) }
}

fn draw() -> Result<(), String> {
    let text = std::fs::read_to_string(FIGURES).map_err(|error| format!("{FIGURES}: {error}"))?;
    let figures = serde_json::from_str(&text).map_err(|error| format!("{FIGURES}: {error}"))?;
    plots::plots(&figures).into_iter().try_for_each(|(name, svg)| write(PLOTS, name, &svg))
}

fn write(folder: &str, name: &str, text: &str) -> Result<(), String> {
    let path = format!("{folder}/{name}");
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|error| format!("{path}: {error}"))?;
    eprintln!("wrote {path}");
    Ok(())
}

fn run_seeds(first: u64, count: u64) -> Result<(), String> {
    let start = Instant::now();
    let failures = soak(first..first + count, |done| {
        if done.is_multiple_of(100) {
            eprint!("\r{done} of {count} ");
            let _ = std::io::stderr().flush();
        }
    });
    eprintln!();
    failures.iter().for_each(|failure| println!("{failure}"));
    let (failed, seconds) = (failures.len(), start.elapsed().as_secs());
    println!("seeds {first} to {}: {failed} failed; {seconds} s", first + count - 1);
    if failed > 0 { Err("show one of them with: make sim-one SEED=...".into()) } else { Ok(()) }
}

/// Runs a scenario and prints its details.
fn show(scenario: &Scenario) -> Result<(), String> {
    println!("{scenario:#?}");
    let outcome = run(scenario);
    show_outcome(scenario, &outcome);
    let violations = check(scenario, &outcome);
    violations.iter().for_each(|violation| println!("{violation}"));
    if violations.is_empty() { Ok(()) } else { Err("a property is violated".into()) }
}

fn show_outcome(scenario: &Scenario, outcome: &Outcome) {
    for (at, node, event) in &outcome.events {
        println!("{:10.6} s  node {node}: {event}", *at as f64 / SEC as f64);
    }
    for view in &outcome.views {
        println!("{view:?}");
    }
    for (tag, (kind, meter)) in outcome.tags.iter().enumerate() {
        let (requested, admitted) = meter.totals();
        println!(
            "tag {tag} {kind:?}: {admitted} of {requested} admitted, excess {:.1} of {:.1} at {:.3} s, rate {:+.2} %",
            meter.excess(),
            bound::excess(scenario, outcome, meter),
            meter.excess_at() as f64 / SEC as f64,
            meter.rate_error() * 100.0
        );
    }
    println!(
        "{:?}; slowest report {} ms; {} of {} conforming requests refused; digest {:016x}",
        outcome.counts,
        outcome.slowest / MS,
        outcome.conforming.1,
        outcome.conforming.0,
        outcome.digest
    );
}
