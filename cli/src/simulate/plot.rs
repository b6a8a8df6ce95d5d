//! A simulation as an SVG plot: one panel for each recovery setting.

use dthrottle_plot::{Legend, Line, Panel, Scale};

use super::busy::{Row, Run};

/// Reads one figure of a row.
type Figure = fn(&Row) -> f64;

/// The name, colour and value of each line. The limit is last, so that no line hides it.
const LINES: [(&str, usize, Figure); 4] = [
    ("throttled", 3, |row| row.throttled),
    ("busy", 1, |row| row.busy),
    ("rps", 0, |row| row.rps),
    ("limit", 2, |row| row.limit),
];

pub(super) fn svg(title: &str, busy_end: u32, runs: &[Run]) -> String {
    let panels: Vec<Panel> = runs.iter().map(|run| panel(title, busy_end, run)).collect();
    dthrottle_plot::svg(&panels)
}

fn panel(title: &str, busy_end: u32, run: &Run) -> Panel {
    let last = run.rows.last().map_or(2, |row| row.time.max(2));
    // The scale ignores the limit, which may be far above the requests. Values above the panel are
    // drawn at its edge.
    let most = run.rows.iter().map(|row| row.rps + row.throttled).fold(1.0, f64::max);
    let line = |(name, colour, value): (&str, usize, Figure)| Line {
        name: Some(name.into()),
        colour,
        width: 2.0,
        dots: false,
        points: run.rows.iter().map(|row| (row.time.into(), value(row))).collect(),
    };
    Panel {
        title: format!("{title}, {}", run.name),
        x: ("seconds".into(), Scale::Linear(1.0, last.into())),
        y: ("per second".into(), Scale::Linear(0.0, most * 1.1)),
        x_ticks: Some((5..=last).step_by(5).map(f64::from).collect()),
        shade: Some((1.0, busy_end.into(), "with busy responses".into())),
        lines: LINES.map(line).into(),
        height: 260.0,
        legend: Legend::Above,
    }
}
