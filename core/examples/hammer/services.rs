//! Children that are killed at random while they record busy responses of far more services than
//! there are slots. Reports to peers must contain what their service asked for, and requests to
//! services that were never busy must not be delayed.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use dthrottle::internals::busy::{BusyEntry, parse_busy};
use dthrottle::internals::cluster::Payload;
use dthrottle::{BusyConfig, BusyThrottle};

use super::TaskResult;
use super::options::Options;
use super::process::{Child, Random, fork, shared, wait_for_killed, yield_now};

const SERVICES: usize = 3000;
const CHILDREN: usize = 4;
/// How often a request to a service that was never busy may be refused in a row.
const MAX_REFUSALS: u32 = 100;
/// The fewest kills, however slow the machine.
const MIN_KILLS: u64 = 100;

pub(crate) fn run(options: &Options) -> TaskResult {
    let time = Duration::from_millis(options.number("ms")?);
    let busy = BusyThrottle::new(BusyConfig::new())?;
    let mut payload = busy.payload(true);
    let names = names(&busy, &mut *payload);
    let [checked, refused] = shared(2)? else {
        return Err("shared memory must have two words".into());
    };
    let start = |seed| start(&busy, seed, checked, refused);

    let (mut kills, mut received, mut wrong) = (0, 0, 0);
    let mut children = Vec::new();
    for seed in 0..CHILDREN {
        children.push(start(seed as u64)?);
    }
    let mut random = Random::new(u64::from(std::process::id()));
    let begun = Instant::now();
    while begun.elapsed() < time || kills < MIN_KILLS {
        sleep(Duration::from_micros(random.below(2000) as u64));
        for entry in drain_payloads(&mut *payload) {
            received += 1;
            let service = names.get(&entry.service);
            wrong += u64::from(service.is_none_or(|service| !is_of(*service, &entry)));
        }
        kills += 1;
        let next = start(1000 + kills)?;
        let killed = std::mem::replace(&mut children[random.below(CHILDREN)], next);
        killed.kill();
        wait_for_killed([killed])?;
    }
    for child in &children {
        child.kill();
    }
    wait_for_killed(children)?;
    println!("kills {kills}");
    println!("received {received} {wrong}");
    println!("quiet {} {}", checked.load(Ordering::Relaxed), refused.load(Ordering::Relaxed));
    // Whatever the killed children left behind, new busy responses are reported and obeyed.
    let now = busy.now();
    let services = SERVICES..SERVICES + 100;
    services.clone().for_each(|service| report_busy(&busy, service));
    let last = drain_payloads(&mut *payload);
    let last = last.iter().filter(|entry| !names.contains_key(&entry.service)).count();
    let refused = services.filter(|service| !busy.should_send(service.to_le_bytes(), now)).count();
    println!("last {last} {refused}");
    Ok(())
}

/// Maps the identity of each service in reports to its number.
fn names(busy: &BusyThrottle, payload: &mut dyn Payload) -> HashMap<u64, usize> {
    let mut names = HashMap::new();
    for service in 0..SERVICES {
        report_busy(busy, service);
        names.extend(drain_payloads(payload).iter().map(|entry| (entry.service, service)));
    }
    names
}

/// All busy responses that peers would receive.
fn drain_payloads(payload: &mut dyn Payload) -> Vec<BusyEntry> {
    let all = std::iter::from_fn(|| payload.take());
    all.flat_map(|bytes| parse_busy(&bytes).unwrap_or_default()).collect()
}

fn start(
    busy: &BusyThrottle,
    seed: u64,
    checked: &AtomicU64,
    refused: &AtomicU64,
) -> io::Result<Child> {
    fork(|| {
        let mut random = Random::new(seed);
        loop {
            report_busy(busy, random.below(SERVICES));
            let quiet = format!("quiet {}", random.below(SERVICES));
            // A busy response that is recorded while its slot is reassigned may briefly delay the
            // slot's next service.
            let mut refusals = 0..MAX_REFUSALS;
            while !busy.should_send(&quiet, busy.now()) {
                if refusals.next().is_none() {
                    refused.fetch_add(1, Ordering::Relaxed);
                    break;
                }
                yield_now();
            }
            checked.fetch_add(1, Ordering::Relaxed);
        }
    })
}

fn report_busy(busy: &BusyThrottle, service: usize) {
    busy.on_busy(service.to_le_bytes(), busy.now(), Some(pause(service)));
}

/// Every service asks for a different pause.
fn pause(service: usize) -> Duration {
    Duration::from_millis(100_000 + 10 * service as u64)
}

fn is_of(service: usize, entry: &BusyEntry) -> bool {
    let expected = Duration::from_micros(entry.age_us + entry.pause_us);
    expected.abs_diff(pause(service)) < Duration::from_millis(1)
}
