//! `dthrottle stats`, `peers` and `top`: reports about a daemon.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::daemon::DaemonArgs;
use crate::output;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print JSON, as the daemon sends it.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: DaemonArgs,
}

#[derive(clap::Args)]
pub(crate) struct TopArgs {
    /// How many tags and how many buckets to show.
    #[arg(long, default_value_t = 15)]
    count: u32,
    /// Seconds between two updates.
    #[arg(long, default_value_t = 1.0)]
    interval: f64,
    /// Print once and exit. This is the default if the output is not a terminal.
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    report: Args,
}

pub(crate) fn stats(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let stats = args.daemon.report("stats")?;
    if args.json {
        return print(&format!("{stats}\n"));
    }
    let mut out = String::new();
    let Value::Object(fields) = &stats else {
        return Err("the answer is not from a dthrottled".into());
    };
    for (key, value) in fields {
        match value {
            Value::Object(counts) => counts.iter().for_each(|(key, value)| {
                let _ = writeln!(out, "{key:<24} {value}");
            }),
            Value::Array(warnings) => warnings.iter().for_each(|warning| {
                let _ = writeln!(out, "warning: {}", text(warning));
            }),
            value => {
                let _ = writeln!(out, "{key:<24} {}", text(value));
            }
        }
    }
    print(&out)
}

pub(crate) fn peers(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let cluster = args.daemon.report("peers")?;
    if args.json {
        return print(&format!("{cluster}\n"));
    }
    if cluster.is_null() {
        return print("the daemon is not part of a cluster\n");
    }
    let row = |node: &str, state: &str, address: &str, age: &str, delay: &str, lost: &str| {
        format!("{node:<18} {state:<8} {address:<28} {age:>10} {delay:>10} {lost:>8}\n")
    };
    let mut out = row("NODE", "STATE", "ADDRESS", "HEARD", "DELAY", "LOST");
    out += &row(&text(&cluster["node"]), "up", "this node", "", "", "");
    for peer in cluster["peers"].as_array().into_iter().flatten() {
        let ms = |key: &str| format!("{:.1} ms", peer[key].as_f64().unwrap_or(0.0));
        let [node, state, address, lost] =
            ["node", "state", "address", "lost"].map(|key| text(&peer[key]));
        out += &row(&node, &state, &address, &ms("age_ms"), &ms("delay_ms"), &lost);
    }
    print(&out)
}

pub(crate) fn top(args: &TopArgs) -> Result<ExitCode, Box<dyn Error>> {
    if !(args.interval > 0.0 && args.interval < 1e6) {
        return Err("--interval must be a number of seconds above zero".into());
    }
    let query = format!("top\0count={}", args.count);
    let live = !args.once && !args.report.json && io::stdout().is_terminal();
    let mut before = None;
    loop {
        let top = args.report.daemon.report(&query)?;
        if args.report.json {
            return print(&format!("{top}\n"));
        }
        let stats = args.report.daemon.report("stats")?;
        let totals = ["allowed", "refused"].map(|key| stats[key].as_u64().unwrap_or(0));
        let view = view(&top, totals, before.replace(totals), args.interval);
        if !live {
            return print(&view);
        }
        // Moves the cursor to the top, clears the rest of each line, and then the rest of the
        // screen.
        print(&format!("\x1b[H{}\x1b[J", view.replace('\n', "\x1b[K\n")))?;
        thread::sleep(Duration::from_secs_f64(args.interval));
    }
}

fn view(top: &Value, totals: [u64; 2], before: Option<[u64; 2]>, interval: f64) -> String {
    let [allowed, refused] = totals;
    let mut out = format!("allowed {allowed}, refused {refused}");
    if let Some([allowed_before, refused_before]) = before {
        let per_s = |now: u64, then: u64| now.saturating_sub(then) as f64 / interval;
        let (yes, no) = (per_s(allowed, allowed_before), per_s(refused, refused_before));
        let _ = write!(out, "; {yes:.0}/s allowed, {no:.0}/s refused");
    }
    let _ = write!(out, "\n\n{:>10}  MOST REFUSED RECENTLY\n", "REFUSALS");
    for entry in top["refused"].as_array().into_iter().flatten() {
        // A tag may contain escape sequences of terminals.
        let tag = text(&entry["tag"]).replace(char::is_control, "?");
        let _ = writeln!(out, "{:>10}  {tag}", text(&entry["count"]));
    }
    let _ = write!(out, "\n{:>10} {:>10}  {:<16} BUSIEST BUCKETS\n", "LEFT", "OF", "FINGERPRINT");
    for bucket in top["buckets"].as_array().into_iter().flatten() {
        let [left, limit, fingerprint, domain, rule] =
            ["balance", "limit", "fingerprint", "domain", "rule"].map(|key| text(&bucket[key]));
        let _ = writeln!(out, "{left:>10} {limit:>10}  {fingerprint:<16} {domain} {rule}");
    }
    out
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn print(text: &str) -> Result<ExitCode, Box<dyn Error>> {
    output::print(text)?;
    Ok(ExitCode::SUCCESS)
}
