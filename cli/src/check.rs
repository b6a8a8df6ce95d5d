//! `dthrottle check`, `peek` and `reset`: queries about one tag, which a daemon answers.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use dthrottle::Decision;
use dthrottle::records::{SerializedRecord, Value, text};
use serde_json::json;

use crate::daemon::DaemonArgs;
use crate::output::print;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The tag of the client to count.
    tag: OsString,
    /// The domain's name.
    #[arg(long)]
    domain: Option<String>,
    /// The units to take; 1 by default.
    #[arg(long)]
    cost: Option<u64>,
    /// Also allow the check if the units become available within this many milliseconds.
    #[arg(long, value_name = "MS")]
    max_delay: Option<u64>,
    /// Take the units that are available, if fewer than the cost.
    #[arg(long)]
    partial: bool,
    /// Print the decision as JSON, as the daemon's /check does.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: DaemonArgs,
}

#[derive(clap::Args)]
pub(crate) struct ResetArgs {
    /// The tag whose buckets are filled.
    tag: OsString,
    /// The domain's name.
    #[arg(long)]
    domain: Option<String>,
    #[command(flatten)]
    daemon: DaemonArgs,
}

/// Prints the decision. The exit status is 1 if the daemon refused.
pub(crate) fn run(verb: &str, args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let mut options = Vec::new();
    options.extend(args.cost.map(|cost| format!("cost={cost}")));
    options.extend(args.max_delay.map(|delay| format!("max_delay_ms={delay}")));
    options.extend(args.partial.then(|| "partial=1".to_string()));
    let answer = args.daemon.query(&query(verb, args.domain.as_deref(), &options, &args.tag))?;
    let allowed = answer.starts_with("OK");
    print(&if args.json { as_json(&answer) } else { as_text(&answer) })?;
    Ok(if allowed { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// One field per line. Prints unknown fields too, so that a newer daemon can add some.
fn as_text(answer: &str) -> String {
    let (word, fields) = answer.split_once(' ').unwrap_or((answer, ""));
    let mut out = format!("{}\n", if word == "OK" { "allowed" } else { "refused" });
    // The name of a rule is the rest of the line.
    let named = ["rule", "deciding"].map(|key| {
        let (fields, name) = fields.split_once(&format!(" {key}="))?;
        Some((fields.len(), (fields, Some((key, name)))))
    });
    let named = named.into_iter().flatten().min();
    let (fields, rule) = named.map_or((fields, None), |(_, named)| named);
    for (key, value) in fields.split(' ').filter_map(|field| field.split_once('=')) {
        // Writing to memory cannot fail.
        let _ = match (key.strip_suffix("_ns"), value.parse::<f64>()) {
            (Some(key), Ok(ns)) => writeln!(out, "{key:<12} {} s", ns / 1e9),
            _ => writeln!(out, "{key:<12} {value}"),
        };
    }
    if let Some((key, rule)) = rule {
        let _ = writeln!(out, "{key:<12} {rule}");
    }
    out
}

/// A JSON object with every field of a decision. Rules are given by name.
fn as_json(answer: &str) -> String {
    let text::Answer { decision, rule } = text::read(answer);
    let values = decision.values().map(|value| match value {
        Value::Rule(index) => Value::Name(index.map(|_| rule)),
        value => value,
    });
    format!("{}\n", json!(SerializedRecord(Decision::FIELDS, &values)))
}

pub(crate) fn reset(args: &ResetArgs) -> Result<ExitCode, Box<dyn Error>> {
    args.daemon.query(&query("reset", args.domain.as_deref(), &[], &args.tag))?;
    Ok(ExitCode::SUCCESS)
}

fn query(verb: &str, domain: Option<&str>, options: &[String], tag: &OsString) -> Vec<u8> {
    let mut fields = vec![verb.to_string()];
    fields.extend(domain.map(|domain| format!("domain={domain}")));
    fields.extend_from_slice(options);
    [fields.join("\0").as_bytes(), b"\0tag=", tag.as_bytes()].concat()
}
