//! The commands and their answers.

use std::io::Write;
use std::time::Duration;

use dthrottle::{CheckOptions, ErrorKind};

use super::call_rules::CallRule;
use crate::daemon::Daemon;

/// The name and arity of each command, as in the answer to COMMAND. A negative arity is the least
/// number of words.
const COMMANDS: [(&str, i32); 9] = [
    ("cl.throttle", -5),
    ("client", -2),
    ("command", -1),
    ("echo", 2),
    ("hello", -1),
    ("info", -1),
    ("ping", -1),
    ("quit", -1),
    ("select", 2),
];

/// Writes the answer to a command of at least one word. Returns whether the connection ends.
/// `added` counts the rules that the connection has added.
pub(super) fn answer(
    words: &[&[u8]],
    daemon: &Daemon,
    added: &mut usize,
    out: &mut Vec<u8>,
) -> bool {
    let name = words[0].to_ascii_lowercase();
    match (name.as_slice(), &words[1..]) {
        (b"cl.throttle", arguments) => throttle(arguments, daemon, added, out),
        (b"ping", []) => out.extend_from_slice(b"+PONG\r\n"),
        (b"ping" | b"echo", [word]) => write_bulk(word, out),
        (b"quit", _) => {
            out.extend_from_slice(b"+OK\r\n");
            return true;
        }
        (b"info", _) => write_bulk(info().as_bytes(), out),
        (b"hello", []) => hello(2, out),
        (b"hello", [b"2", ..]) => hello(2, out),
        (b"hello", [b"3", ..]) => hello(3, out),
        (b"hello", _) => write_error("NOPROTO unsupported protocol version", out),
        (b"command", []) => commands(out),
        (b"command", [verb, ..]) if verb.eq_ignore_ascii_case(b"count") => {
            write_number(COMMANDS.len() as i64, out);
        }
        (b"command", _) => out.extend_from_slice(b"*0\r\n"),
        (b"client", [verb, ..]) if verb.eq_ignore_ascii_case(b"id") => write_number(1, out),
        (b"client", _) | (b"select", [b"0"]) => out.extend_from_slice(b"+OK\r\n"),
        (b"select", [_]) => write_error("ERR DB index is out of range", out),
        (b"ping" | b"echo" | b"select", _) => wrong_number(&name, out),
        _ => {
            let known: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
            let name = String::from_utf8_lossy(&words[0][..words[0].len().min(64)]);
            let known = known.join(", ");
            let message =
                format!("ERR unknown command '{name}'; dthrottled has the commands {known}");
            write_error(&message, out);
        }
    }
    false
}

/// `key max_burst count_per_period period [quantity]`, as in redis-cell.
fn throttle(arguments: &[&[u8]], daemon: &Daemon, added: &mut usize, out: &mut Vec<u8>) {
    let (key, numbers) = match arguments {
        [key, numbers @ ..] if matches!(numbers.len(), 3 | 4) => (key, numbers),
        _ => return wrong_number(b"cl.throttle", out),
    };
    match decide(key, numbers, daemon, added) {
        Ok(answers) => {
            out.extend_from_slice(b"*5\r\n");
            answers.into_iter().for_each(|number| write_number(number, out));
        }
        Err(message) => write_error(&format!("ERR {message}"), out),
    }
}

fn decide(
    key: &[u8],
    numbers: &[&[u8]],
    daemon: &Daemon,
    added: &mut usize,
) -> Result<[i64; 5], String> {
    let number = |index: usize, name: &str, least: u64| {
        let text = numbers[index];
        let number = str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok());
        number.filter(|number| (least..=i64::MAX as u64).contains(number)).ok_or_else(|| {
            let text = String::from_utf8_lossy(text);
            format!("{name} must be a whole number of at least {least}, got {text}")
        })
    };
    let rule = CallRule {
        burst: number(0, "max_burst", 0)?.saturating_add(1),
        count: number(1, "count_per_period", 1)?,
        period_s: number(2, "period", 1)?,
    };
    let quantity = if numbers.len() == 4 { number(3, "quantity", 0)? } else { 1 };
    let throttle = daemon.call_rules.get(rule, added, &daemon.state.counts.resp_rules_refused)?;
    let options = CheckOptions::cost(quantity);
    let decision = match quantity {
        0 => throttle.peek_with(key, options),
        _ => throttle.check_with(key, options),
    };
    // A quantity above the burst can never pass. As in redis-cell, the answer is a refusal without
    // a time to retry.
    let (decision, never) = match decision {
        Err(error) if error.kind() == ErrorKind::Cost => {
            (throttle.peek_with(key, CheckOptions::cost(0)), true)
        }
        decision => (decision, false),
    };
    let decision = decision.map_err(|error| error.to_string())?;
    let limited = never || !decision.allowed;
    if limited {
        daemon.state.refused.add(key);
    }
    let retry_after = if limited && !never { seconds(decision.retry_after) } else { -1 };
    Ok([
        i64::from(limited),
        decision.limit as i64,
        decision.remaining as i64,
        retry_after,
        seconds(decision.reset_after),
    ])
}

/// Whole seconds, rounded up, so that a client that waits for them does not retry too early.
fn seconds(time: Duration) -> i64 {
    (time.as_secs() + u64::from(time.subsec_nanos() > 0)) as i64
}

/// The fields that clients check: the version of Redis, and whether it is loading. There are no
/// figures, because they need a Unix socket or the token (`stats`, `/metrics`).
fn info() -> String {
    let own = concat!("dthrottled_version:", env!("CARGO_PKG_VERSION"));
    [
        "# Server",
        "redis_version:7.0.0",
        "redis_mode:standalone",
        own,
        "# Persistence",
        "loading:0",
        "# Replication",
        "role:master",
        "",
    ]
    .join("\r\n")
}

fn hello(version: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(if version == 3 { b"%7\r\n" } else { b"*14\r\n" });
    for (key, value) in [("server", "redis"), ("version", "7.0.0")] {
        write_bulk(key.as_bytes(), out);
        write_bulk(value.as_bytes(), out);
    }
    write_bulk(b"proto", out);
    write_number(version, out);
    write_bulk(b"id", out);
    write_number(1, out);
    for (key, value) in [("mode", "standalone"), ("role", "master")] {
        write_bulk(key.as_bytes(), out);
        write_bulk(value.as_bytes(), out);
    }
    write_bulk(b"modules", out);
    out.extend_from_slice(b"*0\r\n");
}

fn commands(out: &mut Vec<u8>) {
    let _ = write!(out, "*{}\r\n", COMMANDS.len());
    for (name, arity) in COMMANDS {
        out.extend_from_slice(b"*6\r\n");
        write_bulk(name.as_bytes(), out);
        write_number(arity.into(), out);
        out.extend_from_slice(b"*1\r\n+fast\r\n");
        let key = i64::from(name == "cl.throttle");
        (0..3).for_each(|_| write_number(key, out));
    }
}

fn wrong_number(name: &[u8], out: &mut Vec<u8>) {
    let name = String::from_utf8_lossy(name);
    write_error(&format!("ERR wrong number of arguments for '{name}' command"), out);
}

pub(super) fn write_error(message: &str, out: &mut Vec<u8>) {
    let message = message.replace(char::is_control, " ");
    // Writing to memory cannot fail.
    let _ = write!(out, "-{message}\r\n");
}

fn write_bulk(text: &[u8], out: &mut Vec<u8>) {
    let _ = write!(out, "${}\r\n", text.len());
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn write_number(number: i64, out: &mut Vec<u8>) {
    let _ = write!(out, ":{number}\r\n");
}
