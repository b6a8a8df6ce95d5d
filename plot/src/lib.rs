//! Plots as SVG with axes, lines, dots and shaded areas. Both simulators use it: `sim/` for
//! clusters, `dthrottle simulate` for busy services.
#![forbid(unsafe_code)]

use std::fmt::Write;

const WIDTH: f64 = 640.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 40.0;
/// Colours that remain distinct with any form of colour blindness.
const COLOURS: [&str; 5] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#666666"];

/// The height of a legend above the axes.
const LEGEND: f64 = 18.0;

/// Appends a line of text. Writing to a string cannot fail.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {{ let _ = writeln!($out, $($text)*); }};
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Linear, from the first value to the second.
    Linear(f64, f64),
    /// Logarithmic, from the first value to the second. Both must be greater than zero.
    Log(f64, f64),
}

impl Scale {
    /// Returns the position of a value on the axis, from 0 to 1.
    fn position(self, value: f64) -> f64 {
        match self {
            Scale::Linear(from, to) => (value - from) / (to - from),
            Scale::Log(from, to) => (value / from).ln() / (to / from).ln(),
        }
    }

    /// Returns the values at which the axis has ticks.
    fn ticks(self) -> Vec<f64> {
        match self {
            Scale::Linear(from, to) => {
                let step = round_step((to - from) / 5.0);
                let first = (from / step).ceil() as i64;
                let last = (to / step + 1e-9).floor() as i64;
                (first..=last).map(|i| i as f64 * step).collect()
            }
            Scale::Log(from, to) => {
                let first = from.log10().ceil() as i32;
                (first..=to.log10().floor() as i32).map(|power| 10_f64.powi(power)).collect()
            }
        }
    }
}

/// Rounds up to 1, 2 or 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= step);
    factor.unwrap_or(10.0) * power
}

/// One series of points.
pub struct Line {
    /// The name in the legend. `None` leaves it out.
    pub name: Option<String>,
    /// The index of the colour.
    pub colour: usize,
    /// The width of the line; 0 draws dots only.
    pub width: f64,
    /// Whether points are drawn as dots.
    pub dots: bool,
    /// The points, as (x, y).
    pub points: Vec<(f64, f64)>,
}

/// One diagram.
pub struct Panel {
    /// The title above the diagram.
    pub title: String,
    /// The label and scale of the horizontal axis.
    pub x: (String, Scale),
    /// The label and scale of the vertical axis.
    pub y: (String, Scale),
    /// The ticks of the horizontal axis. `None` uses round values.
    pub x_ticks: Option<Vec<f64>>,
    /// A shaded range of the horizontal axis: from, to, and its label.
    pub shade: Option<(f64, f64, String)>,
    /// The lines.
    pub lines: Vec<Line>,
    /// The height of the panel.
    pub height: f64,
    /// The position of the legend.
    pub legend: Legend,
}

/// The position of a legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Legend {
    /// In the upper left corner, with one name below the other.
    Inside,
    /// Between title and axes, with the names side by side: at most four names.
    Above,
}

/// Returns an SVG file with the panels, one below the other.
pub fn svg(panels: &[Panel]) -> String {
    let height: f64 = panels.iter().map(|panel| panel.height).sum();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    let mut top = 0.0;
    for panel in panels {
        panel.draw(top, &mut out);
        top += panel.height;
    }
    out.push_str("</svg>\n");
    out
}

impl Panel {
    fn draw(&self, top: f64, out: &mut String) {
        text(out, WIDTH / 2.0, top + 18.0, "middle", &self.title);
        self.draw_shade(top, out);
        self.draw_axes(top, out);
        let mut named = 0.0;
        for line in &self.lines {
            self.draw_line(top, line, out);
            if let Some(name) = &line.name {
                self.draw_name(top, named, name, line.colour(), out);
                named += 1.0;
            }
        }
    }

    fn draw_shade(&self, top: f64, out: &mut String) {
        let Some((from, to, what)) = &self.shade else { return };
        let (low, high) = self.ends(top);
        let (left, right) = (self.x_at(*from), self.x_at(*to));
        let (width, height) = (right - left, low - high);
        put!(
            out,
            "<rect x=\"{left:.1}\" y=\"{high:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" fill=\"#eeeeee\"/>"
        );
        text(out, left + width / 2.0, high + 14.0, "middle", what);
    }

    fn draw_axes(&self, top: f64, out: &mut String) {
        let ((low, high), right) = (self.ends(top), WIDTH - RIGHT);
        for value in self.y.1.ticks() {
            let at = self.y_at(top, value);
            put!(out, "<path d=\"M{LEFT} {at:.1}H{right:.1}\" stroke=\"#dddddd\"/>");
            text(out, LEFT - 6.0, at + 4.0, "end", &number(value));
        }
        for value in self.x_ticks.clone().unwrap_or_else(|| self.x.1.ticks()) {
            let at = self.x_at(value);
            put!(out, "<path d=\"M{at:.1} {low:.1}v4\" stroke=\"#333333\"/>");
            text(out, at, low + 17.0, "middle", &number(value));
        }
        put!(
            out,
            "<path d=\"M{LEFT} {high:.1}V{low:.1}H{right:.1}\" fill=\"none\" stroke=\"#333333\"/>"
        );
        text(out, (LEFT + WIDTH - RIGHT) / 2.0, low + 33.0, "middle", &self.x.0);
        let (middle, name) = ((low + high) / 2.0, escaped(&self.y.0));
        put!(
            out,
            "<text x=\"14\" y=\"{middle:.1}\" text-anchor=\"middle\" \
             transform=\"rotate(-90 14 {middle:.1})\">{name}</text>"
        );
    }

    fn draw_line(&self, top: f64, line: &Line, out: &mut String) {
        let colour = line.colour();
        let points = line.points.iter().map(|(x, y)| (self.x_at(*x), self.y_at(top, *y)));
        if line.width > 0.0 {
            let list: Vec<String> = points.clone().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let (list, width) = (list.join(" "), line.width);
            put!(
                out,
                "<polyline points=\"{list}\" fill=\"none\" stroke=\"{colour}\" \
                 stroke-width=\"{width}\"/>"
            );
        }
        for (x, y) in points.filter(|_| line.dots) {
            put!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
        }
    }

    /// Draws the name of the line that comes after `before` others in the legend.
    fn draw_name(&self, top: f64, before: f64, name: &str, colour: &str, out: &mut String) {
        let (left, row) = match self.legend {
            Legend::Inside => (LEFT + 12.0, top + TOP + 14.0 + 16.0 * before),
            Legend::Above => (LEFT + 130.0 * before, top + 36.0),
        };
        let middle = row - 4.0;
        put!(out, "<path d=\"M{left} {middle:.1}h18\" stroke=\"{colour}\" stroke-width=\"3\"/>");
        text(out, left + 24.0, row, "start", name);
    }

    /// Returns the positions of the lower and upper end of the vertical axis.
    fn ends(&self, top: f64) -> (f64, f64) {
        let legend = if self.legend == Legend::Above { LEGEND } else { 0.0 };
        (top + self.height - BOTTOM, top + TOP + legend)
    }

    fn x_at(&self, value: f64) -> f64 {
        LEFT + self.x.1.position(value).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y_at(&self, top: f64, value: f64) -> f64 {
        let (low, high) = self.ends(top);
        high + (1.0 - self.y.1.position(value).clamp(0.0, 1.0)) * (low - high)
    }
}

impl Line {
    fn colour(&self) -> &'static str {
        COLOURS[self.colour % COLOURS.len()]
    }
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, what: &str) {
    let what = escaped(what);
    put!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{what}</text>");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 1e6 => format!("{}M", value / 1e6),
        large if large >= 1e4 => format!("{}k", value / 1e3),
        _ => format!("{}", (value * 1e6).round() / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_have_round_values() {
        assert_eq!(Scale::Linear(0.0, 23.0).ticks(), [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(Scale::Linear(-430.0, 110.0).ticks(), [-400.0, -200.0, 0.0]);
        assert_eq!(Scale::Log(2.0, 2000.0).ticks(), [10.0, 100.0, 1000.0]);
    }

    fn panel() -> Panel {
        let line = Line {
            name: Some("a < b".into()),
            colour: 7,
            width: 1.0,
            dots: true,
            points: vec![(-5.0, -5.0), (0.0, 0.0), (50.0, 50.0)],
        };
        Panel {
            title: "title".into(),
            x: ("x".into(), Scale::Linear(0.0, 10.0)),
            y: ("y".into(), Scale::Linear(0.0, 10.0)),
            x_ticks: None,
            shade: Some((2.0, 3.0, "shade".into())),
            lines: vec![line],
            height: 200.0,
            legend: Legend::Inside,
        }
    }

    #[test]
    fn points_outside_the_axes_are_clamped_and_text_is_escaped() {
        let svg = svg(&[panel()]);
        assert!(svg.contains("62.0,160.0 62.0,160.0 624.0,30.0"), "{svg}");
        assert!(svg.contains("a &lt; b") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn a_legend_above_the_axes_does_not_overlap_lines() {
        let svg = svg(&[Panel { legend: Legend::Above, ..panel() }]);
        assert!(svg.contains("<path d=\"M62 32.0h18\"") && svg.contains("624.0,48.0"), "{svg}");
    }
}
