//! Measures the exchange: writing reports, applying reports of peers, how much that slows checks,
//! and the CPU time of an idle cluster.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dthrottle::internals;
use dthrottle::internals::cluster::wire::{
    DatagramKind, Envelope, Keys, ReportEntry, ReportWriter, Secrets, Section,
};
use dthrottle::internals::cluster::{Counter, Engine, Origin, Output, PeerAddr, Settings};
use dthrottle::{ClusterConfig, Rule, Throttle};

use crate::limiters::{Result, fill, median, table_for, time};
use crate::rounds;
use crate::size::{is_small, sized};
use crate::tags::{Spread, stream};

/// Entries per second that arrive while checks are timed.
const STREAM: f64 = 1e6;

fn tags() -> u32 {
    crate::tags(1_000_000)
}

fn keys() -> Keys {
    let secret = b"a secret of the benchmark";
    Keys::new(&Secrets::Shared { cluster: "bench", secret, packet_keys: &[] })
}

/// Returns how many entries per second are written into reports and sealed.
pub(crate) fn encode() -> Result<f64> {
    let keys = keys();
    let section = Section { rule: 7, quantum: 1, age_us: 10_000 };
    let entries: Vec<ReportEntry> = (0..u64::from(tags()))
        .map(|i| ReportEntry {
            fingerprint: i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & !0xff,
            hits: 1 + i % 50,
            saturated: i % 3 == 0,
        })
        .collect();
    let mut rates = Vec::new();
    for _ in 0..rounds() {
        let (mut writer, mut out, mut sent) = (ReportWriter::new(), Vec::new(), 0_u64);
        let mut seal = |writer: &mut ReportWriter| {
            sent += 1;
            let sender = Origin { node: 1, incarnation: 1 };
            let envelope = Envelope { kind: DatagramKind::Report, flags: 0, sender, packet: sent };
            keys.seal(&envelope, writer.finish(sent, sent, true), &mut out);
            writer.clear(None);
        };
        let start = Instant::now();
        for entry in &entries {
            if !writer.push(&section, *entry) {
                seal(&mut writer);
                writer.push(&section, *entry);
            }
        }
        seal(&mut writer);
        rates.push(entries.len() as f64 / start.elapsed().as_secs_f64());
    }
    Ok(median(rates))
}

/// Two connected nodes, without sockets.
struct Pair {
    throttles: [Throttle; 2],
    engines: [Engine; 2],
}

/// Returns the address of a node.
fn address(node: usize) -> PeerAddr {
    SocketAddr::from(([10, 0, 0, 1 + node as u8], 7373)).into()
}

impl Pair {
    fn new() -> Result<Pair> {
        let throttle = || {
            Throttle::builder()
                .rule(Rule::per_second(1).burst(10_000))
                .fingerprint_key(keys().fingerprint_key())
                .table(table_for(tags() * 3 / 2))
                .build()
        };
        let throttles = [throttle()?, throttle()?];
        let engine = |node: usize| {
            let exchange = internals::exchange(&throttles[node]);
            let now = exchange.now();
            let mut settings = Settings::new(keys(), address(node));
            // The benchmark keeps reports for a while; late ones must be charged nevertheless.
            settings.mechanisms.forgive_late_hits = false;
            Engine::new(settings, exchange, node as u64, 1, now)
        };
        let mut pair = Pair { engines: [engine(0), engine(1)], throttles };
        let now = pair.now();
        pair.engines[0].join(now, &[address(1)]);
        let end = Instant::now() + Duration::from_secs(20);
        while pair.engines.iter().any(|engine| engine.peers() != 1) {
            pair.tick();
            for node in 0..2 {
                for mut datagram in pair.sent(node) {
                    let now = pair.now();
                    pair.engines[1 - node].handle_datagram(now, address(node), &mut datagram);
                }
            }
            if Instant::now() > end {
                return Err("two nodes did not find each other".into());
            }
        }
        // A node that has just started does not apply reports yet.
        thread::sleep(Duration::from_secs(1));
        pair.tick();
        (0..2).for_each(|node| drop(pair.sent(node)));
        Ok(pair)
    }

    fn now(&self) -> u64 {
        internals::exchange(&self.throttles[0]).now()
    }

    fn tick(&mut self) {
        thread::sleep(Duration::from_millis(10));
        for (engine, throttle) in self.engines.iter_mut().zip(&self.throttles) {
            engine.handle_timeout(internals::exchange(throttle).now());
        }
    }

    fn sent(&mut self, node: usize) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        loop {
            match self.engines[node].poll() {
                Output::Transmit(transmit) => sent.push(transmit.bytes),
                Output::Event(_) => {}
                Output::Timeout(_) => return sent,
            }
        }
    }

    /// Returns reports of the first node that have one hit for every tag.
    fn reports(&mut self) -> Result<Vec<Vec<u8>>> {
        fill(tags(), |tag| self.throttles[0].allow(tag).unwrap_or(false))?;
        let mut reports = Vec::new();
        for _ in 0..50 {
            self.tick();
            reports.extend(self.sent(0));
        }
        // Without other datagrams, such as greetings.
        reports.retain(|bytes| bytes[3] == DatagramKind::Report as u8);
        Ok(reports)
    }

    fn applied(&self) -> u64 {
        internals::exchange(&self.throttles[1]).counter(Counter::EntriesReceived.index())
    }
}

/// Returns how many entries per second are decrypted, checked and charged to a table of a million
/// buckets, and the bytes of an entry on the wire.
pub(crate) fn apply() -> Result<(f64, f64)> {
    let mut pair = Pair::new()?;
    let (mut rates, mut bytes_per_entry) = (Vec::new(), 0.0);
    for round in 0..=rounds() {
        let mut reports = pair.reports()?;
        let bytes: usize = reports.iter().map(Vec::len).sum();
        let before = pair.applied();
        let start = Instant::now();
        for report in &mut reports {
            let now = internals::exchange(&pair.throttles[1]).now();
            pair.engines[1].handle_datagram(now, address(0), report);
        }
        let time = start.elapsed().as_secs_f64();
        let entries = (pair.applied() - before) as f64;
        if entries < f64::from(tags()) * 0.999 {
            return Err(format!("{entries} of {} entries were applied", tags()).into());
        }
        bytes_per_entry = bytes as f64 / entries;
        if round > 0 {
            rates.push(entries / time);
        }
        drop(pair.sent(1));
    }
    Ok((median(rates), bytes_per_entry))
}

/// Returns how many times longer a check takes while a million entries per second arrive.
pub(crate) fn slowdown() -> Result<f64> {
    let mut pair = Pair::new()?;
    // A report can be applied only once, so all rounds need reports of their own.
    let mut reports = Vec::new();
    for _ in 0..2 * rounds() {
        reports.extend(pair.reports()?);
    }
    let Pair { throttles, mut engines } = pair;
    let throttle = &throttles[1];
    let stream = stream(tags(), Spread::Uniform, sized(500_000, 10_000));
    let check = |tag: &String| throttle.allow(tag).unwrap_or(false);
    let (mut quiet, mut busy) = (Vec::new(), Vec::new());
    let mut reports = reports.into_iter();
    for _ in 0..rounds() {
        quiet.push(time(&stream, check)?);
        let done = AtomicBool::new(false);
        let busy_time = thread::scope(|scope| {
            let feeder = scope.spawn(|| {
                let (start, before) = (
                    Instant::now(),
                    internals::exchange(throttle).counter(Counter::EntriesReceived.index()),
                );
                while !done.load(Ordering::Relaxed) {
                    let exchange = internals::exchange(throttle);
                    let fed = exchange.counter(Counter::EntriesReceived.index()) - before;
                    if fed as f64 > start.elapsed().as_secs_f64() * STREAM {
                        thread::sleep(Duration::from_micros(200));
                        continue;
                    }
                    // In a short run, times do not count, so the stream may end early.
                    let Some(mut report) = reports.next() else { return is_small() };
                    engines[1].handle_datagram(exchange.now(), address(0), &mut report);
                }
                true
            });
            let timed = time(&stream, check);
            done.store(true, Ordering::Relaxed);
            match feeder.join() {
                Ok(true) => timed,
                _ => Err("there were too few reports for the round".into()),
            }
        });
        busy.push(busy_time?);
    }
    Ok(median(busy) / median(quiet))
}

/// Returns the share of a core that one node of an idle cluster uses.
pub(crate) fn idle() -> Result<f64> {
    const NODES: usize = 3;
    let seconds = sized(5, 1);
    let sockets: Vec<UdpSocket> =
        (0..NODES).map(|_| UdpSocket::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    let addresses: Vec<String> =
        sockets.iter().map(|socket| Ok(socket.local_addr()?.to_string())).collect::<Result<_>>()?;
    drop(sockets);
    let node = |own: &String| {
        let cluster = ClusterConfig::new("bench").listen(own);
        let peers = addresses.iter().filter(|address| *address != own);
        let cluster = peers.fold(cluster, |cluster, peer| cluster.peer(peer));
        Throttle::builder().rule(Rule::per_second(100)).cluster(cluster).build()
    };
    let nodes: Vec<Throttle> = addresses.iter().map(node).collect::<Result<_, _>>()?;
    for node in &nodes {
        node.start()?;
    }
    let end = Instant::now() + Duration::from_secs(20);
    let peers = || nodes.iter().filter_map(Throttle::cluster_stats).map(|stats| stats.peers.len());
    while peers().sum::<usize>() != NODES * (NODES - 1) {
        if Instant::now() > end {
            return Err("the nodes did not find each other".into());
        }
        thread::sleep(Duration::from_millis(100));
    }
    // A new cluster sends more messages than an idle one.
    thread::sleep(Duration::from_secs(sized(3, 0)));
    let before = cpu_seconds()?;
    thread::sleep(Duration::from_secs(seconds));
    let used = cpu_seconds()? - before;
    Ok(used / (seconds * NODES as u64) as f64)
}

/// Returns the CPU time of this process, from /proc.
fn cpu_seconds() -> Result<f64> {
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| -> Result<f64> { Ok(fields.get(at).ok_or("no times")?.parse()?) };
    Ok((ticks(11)? + ticks(12)?) / TICKS)
}
