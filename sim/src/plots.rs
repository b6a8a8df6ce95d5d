//! Which plots there are, made of the table's rows and of runs of their own.

use crate::judge::judge;
use crate::outcome::Sample;
use crate::parallel;
use crate::plot::{Line, Panel, Scale, svg};
use crate::report::Row;
use crate::scenario::{Fault, Kind, Scenario};
use crate::table::SIZES;
use crate::world::run;
use crate::{Ns, SEC};

/// Losses in percent.
const LOSSES: [u64; 7] = [0, 1, 2, 5, 10, 20, 30];

/// All plots, by the names of their files.
pub fn plots(rows: &[Row]) -> Vec<(&'static str, String)> {
    vec![
        ("excess.svg", excess(rows)),
        ("traffic.svg", traffic(rows)),
        ("loss.svg", losses()),
        ("partition.svg", partition()),
    ]
}

fn line(name: &str, colour: usize, points: Vec<(f64, f64)>) -> Line {
    Line { name: Some(name.into()), colour, width: 2.0, dots: true, points }
}

/// A figure of a scenario, by the number of nodes.
fn by_nodes(rows: &[Row], scenario: &str, figure: impl Fn(&Row) -> f64) -> Vec<(f64, f64)> {
    let rows = rows.iter().filter(|row| row.scenario == scenario);
    rows.map(|row| (row.nodes as f64, figure(row))).collect()
}

fn nodes_axis() -> (String, Scale) {
    ("nodes".into(), Scale::Log(1.5, 250.0))
}

fn node_ticks() -> Option<Vec<f64>> {
    Some(SIZES.iter().map(|nodes| *nodes as f64).collect())
}

fn excess(rows: &[Row]) -> String {
    let panel = |overload: &str, height| {
        let seen = by_nodes(rows, overload, |row| row.excess);
        let bound = by_nodes(rows, overload, |row| row.bound);
        let most = bound.iter().map(|(_, y)| *y).fold(1.0, f64::max);
        Panel {
            title: format!("Excess at {overload}, rate 100/s, burst 100"),
            x: nodes_axis(),
            y: ("units".into(), Scale::Linear(0.0, most * 1.35)),
            x_ticks: node_ticks(),
            shade: None,
            lines: vec![line("bound", 4, bound), line("excess in the worst window", 0, seen)],
            height,
        }
    };
    svg(&[panel("10x overload", 240.0), panel("100x overload", 240.0)])
}

fn traffic(rows: &[Row]) -> String {
    let named = ["10x overload", "100x overload", "zipf over 2,000 tags"];
    let lines: Vec<Line> = named
        .iter()
        .enumerate()
        .map(|(i, name)| line(name, i, by_nodes(rows, name, |row| row.bytes_per_s)))
        .collect();
    svg(&[Panel {
        title: "What each node sends".into(),
        x: nodes_axis(),
        y: ("bytes a second".into(), Scale::Log(100.0, 10_000_000.0)),
        x_ticks: node_ticks(),
        shade: None,
        lines,
        height: 300.0,
    }])
}

/// Ten nodes for a minute, at ten times the rate.
fn lossy(percent: u64, repair: bool) -> Scenario {
    let mut scenario = Scenario::new("losses", 7, 10).load(Kind::Greedy, 1, 1000.0);
    (scenario.begin, scenario.settled, scenario.end) = (4 * SEC, 8 * SEC, 68 * SEC);
    scenario.network.loss = percent as f64 / 100.0;
    scenario.controls.repair = repair;
    scenario
}

fn losses() -> String {
    let line_with = |repair: bool| -> Vec<(f64, f64)> {
        let errors = parallel::each(&LOSSES, |percent| {
            run(&lossy(*percent, repair)).tags[0].1.rate_error() * 100.0
        });
        LOSSES.iter().map(|percent| *percent as f64).zip(errors).collect()
    };
    let (with, without) = (line_with(true), line_with(false));
    let most = without.iter().map(|(_, y)| *y).fold(1.0, f64::max);
    svg(&[Panel {
        title: "Error of the rate over a minute, 10 nodes, 10x overload".into(),
        x: ("datagrams lost, percent".into(), Scale::Linear(0.0, 30.0)),
        y: ("percent too many".into(), Scale::Linear(-2.0, most * 1.1)),
        x_ticks: None,
        shade: None,
        lines: vec![line("with repair", 0, with), line("repair turned off", 1, without)],
        height: 280.0,
    }])
}

/// A partition in detail.
fn cut_in_two() -> Scenario {
    let mut scenario = Scenario::new("partition", 7, 10).load(Kind::Greedy, 1, 3000.0);
    (scenario.begin, scenario.settled, scenario.end) = (2 * SEC, 4 * SEC, 26 * SEC);
    let sides = Scenario::sides(10, 2);
    scenario.faults = vec![Fault::Cut { at: 7 * SEC, until: 12 * SEC, sides }];
    scenario.sample = Some(SEC / 10);
    scenario
}

fn partition() -> String {
    let scenario = cut_in_two();
    let outcome = run(&scenario);
    debug_assert!(judge(&scenario, &outcome).is_empty());
    let time = |at: Ns| at as f64 / SEC as f64;
    let samples = &outcome.samples;
    let shade = || Some((7.0, 12.0, "partition".into()));
    // Averages over a second.
    let average = |some: &[Sample]| some.iter().map(|sample| sample.admitted).sum::<u64>() as f64;
    let rate = samples.windows(10).map(|some| (time(some[9].at), average(some))).collect();
    let views = (0..scenario.nodes).map(|node| Line {
        name: None,
        colour: 0,
        width: 1.0,
        dots: false,
        points: samples.iter().map(|one| (time(one.at), one.balances[node] as f64)).collect(),
    });
    let views: Vec<Line> = views.collect();
    let least = views.iter().flat_map(|line| &line.points).map(|(_, y)| *y).fold(0.0, f64::min);
    let seconds = || ("seconds".to_owned(), Scale::Linear(0.0, 26.0));
    svg(&[
        Panel {
            title: "Admitted by 10 nodes in the last second, rate 100/s, burst 100".into(),
            x: seconds(),
            y: ("units".into(), Scale::Linear(0.0, 420.0)),
            x_ticks: None,
            shade: shade(),
            lines: vec![Line { name: None, colour: 1, width: 2.0, dots: false, points: rate }],
            height: 230.0,
        },
        Panel {
            title: "What each node believes to be left".into(),
            x: seconds(),
            y: ("units".into(), Scale::Linear(least * 1.1, 120.0)),
            x_ticks: None,
            shade: shade(),
            lines: views,
            height: 260.0,
        },
    ])
}
