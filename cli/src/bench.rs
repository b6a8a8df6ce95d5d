//! `dthrottle bench`: measures how fast a daemon answers lines.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use crate::daemon::{DaemonArgs, Stream};
use crate::output::print;

/// The lines and their answers must fit into the buffers of the sockets: otherwise both ends would
/// wait for each other.
const MAX_DEPTH: usize = 5000;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many connections are open at once, with one thread each.
    #[arg(long, default_value_t = 4)]
    connections: usize,
    /// How many lines a connection sends before it reads their answers; at most 5,000.
    #[arg(long, default_value_t = 256)]
    depth: usize,
    /// How long to measure.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// How many different tags to send: bench-0, bench-1, ...
    #[arg(long, default_value_t = 10_000)]
    tags: usize,
    #[command(flatten)]
    daemon: DaemonArgs,
}

/// The answers that one connection received.
struct LoadResult {
    allowed: u64,
    refused: u64,
    /// The duration of each round trip in seconds.
    trips: Vec<f64>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let numbers = [args.connections, args.depth, args.tags];
    if numbers.contains(&0) || !(args.seconds > 0.0 && args.seconds < 1e6) {
        return Err("--connections, --depth, --tags and --seconds must be above zero".into());
    }
    if args.depth > MAX_DEPTH {
        return Err(format!("--depth must be at most {MAX_DEPTH}, got {}", args.depth).into());
    }
    let streams = (0..args.connections).map(|_| args.daemon.open());
    let streams: Vec<Stream> = streams.collect::<Result<_, _>>()?;
    let start = Instant::now();
    let results: Vec<Result<LoadResult, String>> = thread::scope(|scope| {
        let threads: Vec<_> = streams
            .into_iter()
            .enumerate()
            .map(|(number, stream)| scope.spawn(move || load(stream, number, args)))
            .collect();
        let ended = |_| Err("a thread panicked".to_string());
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(ended)).collect()
    });
    let elapsed = start.elapsed().as_secs_f64();
    let results = results.into_iter().collect::<Result<Vec<LoadResult>, String>>()?;
    let sum = |count: fn(&LoadResult) -> u64| results.iter().map(count).sum::<u64>();
    let (allowed, refused) = (sum(|result| result.allowed), sum(|result| result.refused));
    let mut trips: Vec<f64> = results.into_iter().flat_map(|result| result.trips).collect();
    trips.sort_by(f64::total_cmp);
    let at = |share: f64| trips[((trips.len() - 1) as f64 * share) as usize] * 1e6;
    let per_second = (allowed + refused) as f64 / elapsed;
    let trip = format!("{:.1} us median, {:.1} us 99th percentile", at(0.5), at(0.99));
    let mut out = format!("{:<16} {per_second:.0}\n", "decisions/s");
    // Writing to memory cannot fail.
    let _ = writeln!(out, "{:<16} {allowed}\n{:<16} {refused}", "allowed", "refused");
    let _ = writeln!(out, "{:<16} {trip}", "round trip");
    print(&out)?;
    Ok(ExitCode::SUCCESS)
}

fn load(mut stream: Stream, number: usize, args: &Args) -> Result<LoadResult, String> {
    let mut result = LoadResult { allowed: 0, refused: 0, trips: Vec::new() };
    let mut next = number;
    let mut answers = vec![0; 3 * args.depth];
    let end = Instant::now() + Duration::from_secs_f64(args.seconds);
    let mut lines = Vec::new();
    while Instant::now() < end {
        lines.clear();
        for _ in 0..args.depth {
            next = (next + 7919) % args.tags;
            lines.extend_from_slice(format!("bench-{next}\n").as_bytes());
        }
        let start = Instant::now();
        let done = stream.write_all(&lines).and_then(|()| stream.read_exact(&mut answers));
        done.map_err(|error| format!("the daemon did not answer: {error}"))?;
        result.trips.push(start.elapsed().as_secs_f64());
        for answer in answers.chunks(3) {
            match answer {
                b"OK\n" => result.allowed += 1,
                b"NO\n" => result.refused += 1,
                other => return Err(format!("expected the answer of a dthrottled, got {other:?}")),
            }
        }
    }
    Ok(result)
}
