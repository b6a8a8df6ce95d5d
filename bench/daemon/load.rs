//! The client. It sends different commands to different servers, in the same way.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use crate::Result;
use crate::size::sized;

const CONNECTIONS: usize = 8;
/// Batches per round over all connections. Slow servers get fewer.
const BATCHES: usize = 4000;
const SLOW_BATCHES: usize = 200;
const SMALL_BATCHES: usize = 40;
const TRIPS: usize = 20_000;
const SMALL_TRIPS: usize = 200;
const TAGS: usize = 10_000;

/// Batches of commands, and how to recognize the answers.
pub(crate) struct Script {
    batches: Vec<Vec<u8>>,
    /// Batches per round.
    count: usize,
    depth: usize,
    /// The bytes that end an answer, and how often an answer has them.
    end: &'static [u8],
    ends: usize,
    /// The expected answer, if all answers must be equal.
    good: Option<&'static [u8]>,
}

fn tag(number: usize) -> String {
    format!("203.0.{}.{}", 100 + number / 100 % 100, 100 + number % 100)
}

impl Script {
    pub(crate) fn lines(depth: usize) -> Script {
        Script { good: Some(b"OK\n"), ..Script::of(depth, b"\n", 1, |tag| format!("{tag}\n")) }
    }

    pub(crate) fn echo(depth: usize) -> Script {
        Script::of(depth, b"\n", 1, |tag| format!("{tag}\n"))
    }

    pub(crate) fn incr(depth: usize) -> Script {
        Script::of(depth, b"\r\n", 1, |tag| resp(&["INCR", tag]))
    }

    pub(crate) fn gcra(sha: &str, depth: usize) -> Script {
        let make = |tag: &str| resp(&["EVALSHA", sha, "1", tag, "1000000", "1000000000", "1"]);
        let script = Script::of(depth, b"\r\n", 1, make);
        Script { good: Some(b":1\r\n"), count: sized(SLOW_BATCHES, SMALL_BATCHES), ..script }
    }

    fn of(depth: usize, end: &'static [u8], ends: usize, make: impl Fn(&str) -> String) -> Script {
        let mut number = 0;
        let mut batch = || {
            let commands = (0..depth).map(|_| {
                // A step that is coprime to TAGS visits all tags, in an order that defeats caches.
                number = (number + 7919) % TAGS;
                make(&tag(number))
            });
            commands.collect::<String>().into_bytes()
        };
        let batches = (0..TAGS.div_ceil(depth).min(TAGS)).map(|_| batch()).collect();
        Script { batches, count: sized(BATCHES, SMALL_BATCHES), depth, end, ends, good: None }
    }

    /// Reads the answers to a batch.
    fn read(&self, stream: &mut UnixStream, buffer: &mut [u8]) -> Result<()> {
        let mut missing = self.depth * self.ends;
        let mut filled = 0;
        while missing > 0 {
            let count = stream.read(&mut buffer[filled..])?;
            if count == 0 {
                return Err("the server closed the connection".into());
            }
            let last = *self.end.last().ok_or("no end")?;
            missing -= buffer[filled..filled + count].iter().filter(|byte| **byte == last).count();
            filled += count;
        }
        if let Some(good) = self.good
            && buffer[..filled].chunks(good.len()).any(|answer| answer != good)
        {
            // A refusal takes another code path, which may be faster.
            return Err(format!("a command was refused: {:?}", buffer[..filled].get(..40)).into());
        }
        Ok(())
    }
}

/// Encodes a command for Redis.
fn resp(words: &[&str]) -> String {
    let mut out = format!("*{}\r\n", words.len());
    for word in words {
        let _ = write!(out, "${}\r\n{word}\r\n", word.len());
    }
    out
}

/// Returns decisions per second when the pipeline of every connection is full.
pub(crate) fn pipelined(socket: &Path, script: &Script) -> Result<f64> {
    let streams = (0..CONNECTIONS).map(|_| UnixStream::connect(socket));
    let mut streams: Vec<UnixStream> = streams.collect::<Result<_, _>>()?;
    let mut buffer = vec![0; 1 << 20];
    let mut batches = script.batches.iter().cycle();
    let mut next = || batches.next().ok_or("no batches");
    let start = Instant::now();
    for stream in &mut streams {
        stream.write_all(next()?)?;
    }
    for number in 0..script.count {
        let stream = &mut streams[number % CONNECTIONS];
        script.read(stream, &mut buffer)?;
        if number + CONNECTIONS < script.count {
            stream.write_all(next()?)?;
        }
    }
    Ok((script.count * script.depth) as f64 / start.elapsed().as_secs_f64())
}

/// Returns the median seconds of a round trip. The client runs on the first core.
pub(crate) fn round_trip(socket: &Path, script: &Script) -> Result<f64> {
    let mut cores = rustix::thread::CpuSet::new();
    cores.set(0);
    let all = rustix::thread::sched_getaffinity(None)?;
    rustix::thread::sched_setaffinity(None, &cores)?;
    let mut stream = UnixStream::connect(socket)?;
    let mut buffer = vec![0; 1024];
    let mut times = Vec::with_capacity(TRIPS);
    for batch in script.batches.iter().cycle().take(sized(TRIPS, SMALL_TRIPS)) {
        let start = Instant::now();
        stream.write_all(batch)?;
        script.read(&mut stream, &mut buffer)?;
        times.push(start.elapsed().as_secs_f64());
    }
    rustix::thread::sched_setaffinity(None, &all)?;
    Ok(crate::median(times))
}
