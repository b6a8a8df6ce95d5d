//! The simulation of the document "Throttling on Busy Responses": ten seconds with busy responses,
//! then at most twenty without.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use clap::ValueEnum;
use dthrottle::busy::{NO_LIMIT, Recover};

use super::plot;
use crate::output::print;

/// The requests of a client per second, and the most busy responses, at the peak of a pattern.
const RPS: f64 = 5000.0;
const BUSY: f64 = 3000.0;
/// How much a linear pattern adds or subtracts each second.
const SLOPE: f64 = 100.0;
/// The last second with busy responses, and the last second of all.
const TROUBLE: u32 = 10;
const LAST: u32 = 30;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How the numbers of requests and busy responses change.
    #[arg(default_value = "steady")]
    pattern: Pattern,
    /// Recover by multiplying the limit with this number each second. Without this option and
    /// --recover-value, both are simulated: first the rate 3, then the value 200.
    #[arg(long, value_parser = positive, allow_negative_numbers = true)]
    #[arg(conflicts_with = "recover_value")]
    recover_rate: Option<f64>,
    /// Recover by adding this number of requests to the limit each second.
    #[arg(long, value_parser = positive, allow_negative_numbers = true)]
    recover_value: Option<f64>,
    /// Also draw a plot into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Pattern {
    /// Constant numbers of requests and busy responses.
    Steady,
    /// Busy responses in every third second.
    Flappy,
    /// Growing numbers of requests and busy responses.
    LinearGrow,
    /// Decreasing numbers of requests.
    LinearDecrease,
}

/// The figures of one second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) time: u32,
    pub(super) rps: f64,
    pub(super) throttled: f64,
    pub(super) busy: f64,
    pub(super) limit: f64,
}

/// A simulation with one way to recover.
pub(super) struct Run {
    pub(super) name: String,
    pub(super) rows: Vec<Row>,
    converged: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let both = [Recover::Rate(3.0), Recover::Value(200.0)];
    let chosen = args.recover_rate.map(Recover::Rate).or(args.recover_value.map(Recover::Value));
    let recovers = chosen.map_or(both.to_vec(), |recover| vec![recover]);
    let runs: Vec<Run> = recovers.into_iter().map(|it| Run::new(args.pattern, it)).collect();
    let text: String = runs.iter().map(|run| run.text(args.pattern)).collect();
    if let Some(path) = &args.svg {
        let title = args.pattern.words().2;
        fs::write(path, plot::svg(title, TROUBLE, &runs))
            .map_err(|cause| format!("cannot write {}: {cause}", path.display()))?;
    }
    Ok(print(&text)?)
}

impl Pattern {
    /// The words for the change of requests and of busy responses, and the pattern's name.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Pattern::Steady => ("steady", "steady", "steady"),
            Pattern::Flappy => ("steady", "flappy", "flappy"),
            Pattern::LinearGrow => ("linear_grow", "linear_grow", "linear_grow"),
            Pattern::LinearDecrease => ("linear_decrease", "steady", "linear_decrease"),
        }
    }

    /// The requests and busy responses of the start line.
    fn start(self) -> (f64, f64) {
        match self {
            Pattern::LinearGrow => (SLOPE, 0.0),
            _ => (RPS, BUSY),
        }
    }

    /// The requests that a client would send in this second, and the most busy responses.
    fn at(self, time: u32) -> (f64, f64) {
        let (rps, busy) = self.start();
        let slope = SLOPE * f64::from(time);
        match self {
            Pattern::Steady => (rps, busy),
            Pattern::Flappy => (rps, if time.is_multiple_of(3) { busy } else { 0.0 }),
            Pattern::LinearGrow => (rps + slope, busy + slope),
            Pattern::LinearDecrease => (rps - slope, busy),
        }
    }
}

impl Run {
    fn new(pattern: Pattern, recover: Recover) -> Run {
        let name = match recover {
            Recover::Rate(rate) => format!("recover_rate: {rate}"),
            Recover::Value(value) => format!("recover_value: {value}"),
        };
        let mut limit = NO_LIMIT;
        let mut rows = Vec::new();
        for time in 1..TROUBLE {
            let (rps, most_busy) = pattern.at(time);
            let through = rps.min(limit).floor();
            let busy = most_busy.min(through);
            rows.push(Row { time, rps: through, throttled: rps - through, busy, limit });
            // `busy` is not negative and fits easily.
            limit = recover.next(limit, busy as u64);
        }
        let mut converged = false;
        for time in TROUBLE + 1..=LAST + 1 {
            let (rps, _) = pattern.at(time);
            let through = rps.min(limit);
            rows.push(Row { time, rps: through, throttled: rps - through, busy: 0.0, limit });
            converged = through >= rps;
            if converged {
                break;
            }
            limit = recover.next(limit, 0);
        }
        Run { name, rows, converged }
    }

    /// The format of the document, which cuts off fractions.
    fn text(&self, pattern: Pattern) -> String {
        let (rps, busy) = pattern.start();
        let (rps_word, busy_word, _) = pattern.words();
        let mut out = format!(
            "started with {}\n\
             start rps={rps} ({rps_word}) throttled=0 busy={busy} ({busy_word}) limit={NO_LIMIT}\n",
            self.name
        );
        for row in &self.rows {
            if row.time == TROUBLE + 1 {
                out.push_str("    ++++ recovering\n");
            }
            let mark = if row.time < TROUBLE { "---" } else { "+++" };
            let Row { time, rps, throttled, busy, limit } = row;
            let [rps, throttled, busy, limit] = [rps, throttled, busy, limit].map(|n| n.trunc());
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "    {mark} time={time} rps={rps} throttled={throttled} busy={busy} limit={limit}"
            );
        }
        let end = self.rows.last().map_or(0, |row| row.time);
        let _ = match self.converged {
            true => writeln!(out, "    converged at time={end}, speed={}", end - TROUBLE),
            false => writeln!(out, "    failed to converge"),
        };
        out
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 && number < NO_LIMIT => Ok(number),
        _ => Err(format!("must be above 0 and below {NO_LIMIT}")),
    }
}
