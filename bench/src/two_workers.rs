//! Measures two workers on one table: two threads with governor, and two threads and two processes
//! with dthrottle.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::{env, fs, thread};

use dthrottle::TableConfig;

use crate::limiters::{Result, dthrottle, fill, governor, median, table_for, time};
use crate::tags::{Spread, stream};
use crate::{checks, rounds};

/// The argument with which this program runs as a child process.
pub(crate) const CHILD: &str = "--child";

/// Nanoseconds per check of each worker.
pub(crate) struct Times {
    pub(crate) governor_threads: f64,
    pub(crate) threads: f64,
    pub(crate) processes: f64,
}

pub(crate) fn compare(tags: u32) -> Result<Times> {
    let governor = governor()?;
    let throttle = dthrottle(table_for(tags))?;
    fill(tags, |tag| governor.check_key(tag).is_ok())?;
    fill(tags, |tag| throttle.allow(tag).unwrap_or(false))?;
    let stream = stream(tags, Spread::Uniform, checks());
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..rounds() {
        theirs.push(two_threads(&stream, |tag| governor.check_key(tag).is_ok())?);
        ours.push(two_threads(&stream, |tag| throttle.allow(tag).unwrap_or(false))?);
    }
    drop((governor, throttle));
    let processes = two_processes(tags)?;
    Ok(Times { governor_threads: median(theirs), threads: median(ours), processes })
}

fn two_threads(stream: &[String], check: impl Fn(&String) -> bool + Sync) -> Result<f64> {
    let barrier = Barrier::new(2);
    let run = || {
        barrier.wait();
        time(stream, &check).map_err(|error| error.to_string())
    };
    let (one, two) = thread::scope(|scope| {
        let other = scope.spawn(run);
        (run(), other.join())
    });
    let two = two.map_err(|_| "a thread panicked")?;
    Ok((one? + two?) / 2.0)
}

/// In each round, the children print that they are ready, start together, and print their time.
fn two_processes(tags: u32) -> Result<f64> {
    let dir = env::temp_dir().join(format!("dthrottle-bench-{}", std::process::id()));
    fs::create_dir_all(&dir)?;
    let start = || {
        let mut command = Command::new(env::current_exe()?);
        command.arg(CHILD).arg(&dir).arg(tags.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    };
    let mut children = [start()?, start()?];
    let times = drive(&mut children);
    for mut child in children {
        child.kill().ok();
        child.wait()?;
    }
    fs::remove_dir_all(&dir)?;
    Ok(median(times?))
}

fn drive(children: &mut [Child; 2]) -> Result<Vec<f64>> {
    let mut lines = Vec::new();
    for child in children.iter_mut() {
        lines.push(BufReader::new(child.stdout.take().ok_or("no output")?).lines());
    }
    let mut next = |i: usize| lines[i].next().ok_or("a child ended early");
    let mut times = Vec::new();
    for _ in 0..rounds() {
        for i in 0..2 {
            next(i)??;
        }
        for child in children.iter_mut() {
            child.stdin.as_mut().ok_or("no input")?.write_all(b"go\n")?;
        }
        let mut sum = 0.0;
        for i in 0..2 {
            sum += next(i)??.parse::<f64>()?;
        }
        times.push(sum / 2.0);
    }
    Ok(times)
}

/// Runs a child process.
pub(crate) fn child(dir: &str, tags: &str) -> Result<()> {
    let tags: u32 = tags.parse()?;
    let table = TableConfig::named("bench").dir(dir).tags(tags.max(1 << 20).into());
    let throttle = dthrottle(table)?;
    fill(tags, |tag| throttle.allow(tag).unwrap_or(false))?;
    let stream = stream(tags, Spread::Uniform, checks());
    let mut line = String::new();
    for _ in 0..rounds() {
        println!("ready");
        std::io::stdin().read_line(&mut line)?;
        println!("{}", time(&stream, |tag| throttle.allow(tag).unwrap_or(false))?);
    }
    Ok(())
}
