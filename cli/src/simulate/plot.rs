//! A simulation as an SVG plot: one panel for each way to recover.

use std::fmt::Write;

use super::busy::{Row, Run};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 40.0;

/// A figure of a second.
type Figure = fn(&Row) -> f64;

/// What is drawn, in colours that people with any kind of sight can tell apart; the limit last, so
/// that the others do not hide it.
const LINES: [(&str, &str, Figure); 4] = [
    ("throttled", "#cc79a7", |row| row.throttled),
    ("busy", "#d55e00", |row| row.busy),
    ("rps", "#0072b2", |row| row.rps),
    ("limit", "#009e73", |row| row.limit),
];

pub(super) fn svg(title: &str, trouble: u32, runs: &[Run]) -> String {
    let height = HEIGHT * runs.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (i, run) in runs.iter().enumerate() {
        let panel = Panel::new(run, HEIGHT * i as f64);
        panel.draw(&format!("{title}, {}", run.name), trouble, run, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

/// Where a panel is, and how far its axes go.
struct Panel {
    top: f64,
    last: f64,
    most: f64,
}

impl Panel {
    fn new(run: &Run, top: f64) -> Panel {
        let last = run.rows.last().map_or(1, |row| row.time);
        // The limit may be beyond all that is sent: what is above the panel is not shown.
        let most = run.rows.iter().map(|row| row.rps + row.throttled).fold(1.0, f64::max);
        Panel { top, last: f64::from(last), most: most * 1.1 }
    }

    fn x(&self, time: f64) -> f64 {
        LEFT + (time - 1.0) / (self.last - 1.0).max(1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let high = HEIGHT - TOP - BOTTOM;
        self.top + TOP + (1.0 - (value / self.most).clamp(0.0, 1.0)) * high
    }

    fn draw(&self, title: &str, trouble: u32, run: &Run, out: &mut String) {
        let (low, high, right) = (self.y(0.0), self.y(self.most), WIDTH - RIGHT);
        text(out, WIDTH / 2.0, self.top + 18.0, "middle", title);
        let end = self.x(f64::from(trouble)).min(right);
        put(
            out,
            &format!(
                "<rect x=\"{LEFT}\" y=\"{high:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#eeeeee\"/>",
                end - LEFT,
                low - high
            ),
        );
        let step = round_step(self.most / 5.0);
        for i in 0..=(self.most / step) as u32 {
            let value = f64::from(i) * step;
            let at = self.y(value);
            put(out, &format!("<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#dddddd\"/>"));
            text(out, LEFT - 6.0, at + 4.0, "end", &value.to_string());
        }
        for time in (5..=self.last as u32).step_by(5) {
            let at = self.x(f64::from(time));
            put(out, &format!("<path d=\"M{at:.1} {low:.1}v4\" stroke=\"#333333\"/>"));
            text(out, at, low + 17.0, "middle", &time.to_string());
        }
        text(out, (LEFT + right) / 2.0, low + 33.0, "middle", "seconds; grey: with busy answers");
        put(
            out,
            &format!(
                "<path d=\"M{LEFT} {high:.1}V{low:.1}H{right}\" fill=\"none\" stroke=\"#333333\"/>"
            ),
        );
        for (i, (name, colour, value)) in LINES.into_iter().enumerate() {
            self.line(run, colour, value, out);
            let left = LEFT + 130.0 * i as f64;
            let row = self.top + 36.0;
            put(
                out,
                &format!(
                    "<path d=\"M{left} {:.1}h18\" stroke=\"{colour}\" stroke-width=\"3\"/>",
                    row - 4.0
                ),
            );
            text(out, left + 24.0, row, "start", name);
        }
    }

    fn line(&self, run: &Run, colour: &str, value: Figure, out: &mut String) {
        let point = |row: &Row| format!("{:.1},{:.1}", self.x(row.time.into()), self.y(value(row)));
        let points: Vec<String> = run.rows.iter().map(point).collect();
        put(
            out,
            &format!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                points.join(" ")
            ),
        );
    }
}

/// The next of 1, 2, 5, 10 ...
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= step);
    factor.unwrap_or(10.0) * power
}

fn put(out: &mut String, element: &str) {
    out.push_str(element);
    out.push('\n');
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, what: &str) {
    // Writing to a string cannot fail. What is written has no markup in it.
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{what}</text>");
}
