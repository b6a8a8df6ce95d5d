//! The plots, which are drawn from the committed figures in `docs/figures/simulation.json`: the
//! rows of the table, and the series of `series.rs`.

use dthrottle_plot::{Legend, Line, Panel, Scale, svg};
use serde_json::Value;

use crate::table::SIZES;

/// Returns all plots with the names of their files. Figures that are missing are not drawn.
pub fn plots(figures: &Value) -> Vec<(&'static str, String)> {
    vec![
        ("excess.svg", excess(&figures["rows"])),
        ("traffic.svg", traffic(&figures["rows"])),
        ("loss.svg", losses(&figures["losses"])),
        ("partition.svg", partition(&figures["partition"])),
    ]
}

fn line(name: &str, colour: usize, points: Vec<(f64, f64)>) -> Line {
    Line { name: Some(name.into()), colour, width: 2.0, dots: true, points }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn numbers(value: &Value) -> impl Iterator<Item = f64> {
    list(value).filter_map(Value::as_f64)
}

/// Returns a figure of a scenario by the number of nodes.
fn by_nodes(rows: &Value, scenario: &str, figure: &str) -> Vec<(f64, f64)> {
    let rows = list(rows).filter(|row| row["scenario"] == scenario);
    rows.filter_map(|row| Some((row["nodes"].as_f64()?, row[figure].as_f64()?))).collect()
}

fn nodes_axis() -> (String, Scale) {
    ("nodes".into(), Scale::Log(1.5, 250.0))
}

fn node_ticks() -> Option<Vec<f64>> {
    Some(SIZES.iter().map(|nodes| *nodes as f64).collect())
}

fn excess(rows: &Value) -> String {
    let panel = |overload: &str, height| {
        let measured = by_nodes(rows, overload, "excess");
        let bound = by_nodes(rows, overload, "bound");
        let most = bound.iter().map(|(_, y)| *y).fold(1.0, f64::max);
        Panel {
            title: format!("Excess at {overload}, rate 100/s, burst 100"),
            x: nodes_axis(),
            y: ("units".into(), Scale::Linear(0.0, most * 1.35)),
            x_ticks: node_ticks(),
            shade: None,
            lines: vec![line("bound", 4, bound), line("excess in the worst window", 0, measured)],
            height,
            legend: Legend::Inside,
        }
    };
    svg(&[panel("10x overload", 240.0), panel("100x overload", 240.0)])
}

fn traffic(rows: &Value) -> String {
    let named = ["10x overload", "100x overload", "zipf over 2,000 tags"];
    let lines: Vec<Line> = named
        .iter()
        .enumerate()
        .map(|(i, name)| line(name, i, by_nodes(rows, name, "bytes_per_s")))
        .collect();
    svg(&[Panel {
        title: "Traffic sent by each node".into(),
        x: nodes_axis(),
        y: ("bytes a second".into(), Scale::Log(100.0, 10_000_000.0)),
        x_ticks: node_ticks(),
        shade: None,
        lines,
        height: 300.0,
        legend: Legend::Inside,
    }])
}

fn losses(figures: &Value) -> String {
    let line_of = |name: &str| numbers(&figures["percent"]).zip(numbers(&figures[name])).collect();
    let (with, without): (Vec<_>, Vec<_>) = (line_of("with_repair"), line_of("without_repair"));
    let most = without.iter().map(|(_, y)| *y).fold(1.0, f64::max);
    svg(&[Panel {
        title: "Error of the rate over a minute, 10 nodes, 10x overload".into(),
        x: ("datagrams lost, percent".into(), Scale::Linear(0.0, 30.0)),
        y: ("percent too many".into(), Scale::Linear(-2.0, most * 1.1)),
        x_ticks: None,
        shade: None,
        lines: vec![line("with repair", 0, with), line("repair turned off", 1, without)],
        height: 280.0,
        legend: Legend::Inside,
    }])
}

fn partition(figures: &Value) -> String {
    let times: Vec<f64> = numbers(&figures["seconds"]).collect();
    let [begin, end, last] =
        ["begin", "end", "last"].map(|key| figures[key].as_f64().unwrap_or(0.0));
    let shade = || Some((begin, end, "partition".into()));
    // Units admitted within the last second.
    let admitted: Vec<f64> = numbers(&figures["admitted"]).collect();
    let sums = admitted.windows(10).map(|some| some.iter().sum::<f64>());
    let rate = times.iter().skip(9).copied().zip(sums).collect();
    let views = list(&figures["balances"]).map(|balances| Line {
        name: None,
        colour: 0,
        width: 1.0,
        dots: false,
        points: times.iter().copied().zip(numbers(balances)).collect(),
    });
    let views: Vec<Line> = views.collect();
    let least = views.iter().flat_map(|line| &line.points).map(|(_, y)| *y).fold(0.0, f64::min);
    let seconds = || ("seconds".to_owned(), Scale::Linear(0.0, last));
    svg(&[
        Panel {
            title: "Admitted by 10 nodes in the last second, rate 100/s, burst 100".into(),
            x: seconds(),
            y: ("units".into(), Scale::Linear(0.0, 420.0)),
            x_ticks: None,
            shade: shade(),
            lines: vec![Line { name: None, colour: 1, width: 2.0, dots: false, points: rate }],
            height: 230.0,
            legend: Legend::Inside,
        },
        Panel {
            title: "Balance on each node".into(),
            x: seconds(),
            y: ("units".into(), Scale::Linear(least * 1.1, 120.0)),
            x_ticks: None,
            shade: shade(),
            lines: views,
            height: 260.0,
            legend: Legend::Inside,
        },
    ])
}
