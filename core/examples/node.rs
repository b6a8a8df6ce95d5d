//! A cluster node that checks at an even rate, for `tests/cluster`: see `tests/cluster/hammer.py`.
//!
//! `node CONFIG [observe]`, with the configuration as TOML. With `observe` it only reads the table
//! and never exchanges. It reads commands from its input: `run START RATE MS TAG` checks at a rate,
//! `balance TAG` prints a balance, `take UNITS TAG` takes many units at once and prints the
//! balance, `stats` prints the statistics of the cluster as `NAME=NUMBER ...`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "it runs in real time")]

use std::env;
use std::error::Error;
use std::io::{self, BufRead};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dthrottle::{CheckOptions, Throttle};

const TENTH_US: u64 = 100_000;

type CommandResult = Result<(), Box<dyn Error>>;

fn main() -> CommandResult {
    let args: Vec<String> = env::args().skip(1).collect();
    let throttle = Throttle::from_toml(args.first().ok_or("usage: node CONFIG [observe]")?)?;
    if args.get(1).is_none_or(|word| word != "observe") {
        throttle.start()?;
    }
    println!("ready");
    for line in io::stdin().lock().lines() {
        answer(&throttle, &line?)?;
    }
    Ok(())
}

fn answer(throttle: &Throttle, line: &str) -> CommandResult {
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["run", start, rate, ms, tag] => {
            let (start, ms): (u64, u64) = (start.parse()?, ms.parse()?);
            run(throttle, start * 1000, rate.parse()?, ms * 1000, tag)?;
        }
        ["balance", tag] => println!("{}", throttle.peek(tag)?.balance),
        ["take", units, tag] => {
            let ask = CheckOptions::cost(units.parse()?);
            println!("{}", throttle.check_with(tag, ask)?.balance);
        }
        ["stats"] => stats(throttle)?,
        _ => return Err(format!("unknown command {line:?}").into()),
    }
    Ok(())
}

fn run(throttle: &Throttle, start: u64, rate: u64, us: u64, tag: &str) -> CommandResult {
    let (mut tenth, mut asked, mut admitted) = (start / TENTH_US, 0_u64, 0_u64);
    let end = start + us;
    for number in 0.. {
        let now = wait_until((start + number * 1_000_000 / rate).min(end))?;
        while tenth < now.min(end) / TENTH_US {
            println!("{tenth} {asked} {admitted} {}", throttle.peek(tag)?.balance);
            (tenth, asked, admitted) = (tenth + 1, 0, 0);
        }
        if now >= end {
            break;
        }
        asked += 1;
        admitted += u64::from(throttle.allow(tag)?);
    }
    println!("done");
    Ok(())
}

fn wait_until(due: u64) -> Result<u64, Box<dyn Error>> {
    loop {
        let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros())?;
        if now >= due {
            return Ok(now);
        }
        sleep(Duration::from_micros(due - now));
    }
}

fn stats(throttle: &Throttle) -> CommandResult {
    let stats = throttle.cluster_stats().ok_or("the configuration has no cluster")?;
    let up = stats.peers.iter().filter(|peer| peer.state == "up").count();
    let lost: u64 = stats.peers.iter().map(|peer| peer.lost).sum();
    print!("pid={} incarnation={} up={up} lost={lost}", stats.pid, stats.incarnation);
    for (name, count) in &stats.counts {
        print!(" {name}={count}");
    }
    println!();
    Ok(())
}
