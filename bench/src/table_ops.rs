//! Measures features that the other limiters do not have: batches, the exchange's access to the
//! table, and memory.

use std::time::Instant;

use dthrottle::internals;
use dthrottle::internals::access::{DrainedEntry, PeerEntry};
use dthrottle::{Rule, Throttle};

use crate::limiters::{Result, dthrottle, fill, median, table_for, time};
use crate::tags::{Spread, stream};
use crate::{checks, rounds, tags};

const BATCH: usize = 64;

/// Returns nanoseconds per check of single calls, and of batches of 64.
pub(crate) fn batch() -> Result<(f64, f64)> {
    let count = tags(10_000_000);
    let throttle = dthrottle(table_for(count))?;
    fill(count, |tag| throttle.allow(tag).unwrap_or(false))?;
    let stream = stream(count, Spread::Uniform, checks());
    let (mut singles, mut batches) = (Vec::new(), Vec::new());
    for _ in 0..rounds() {
        singles.push(time(&stream, |tag| throttle.allow(tag).unwrap_or(false))?);
        let mut allowed = [false; BATCH];
        let start = Instant::now();
        let mut admitted = 0;
        for tags in stream.chunks(BATCH) {
            throttle.allow_many(tags, &mut allowed[..tags.len()])?;
            admitted += allowed[..tags.len()].iter().filter(|allowed| **allowed).count();
        }
        batches.push(start.elapsed().as_nanos() as f64 / stream.len() as f64);
        if admitted != stream.len() {
            return Err(format!("a batch admitted {admitted} of {}", stream.len()).into());
        }
    }
    Ok((median(singles), median(batches)))
}

/// Returns how many entries per second are applied for peers, and drained for reports.
pub(crate) fn exchange() -> Result<(f64, f64)> {
    let count = tags(1_000_000);
    // With a burst of at most 65,536, every unit is a hit, and an entry for each tag is drained.
    // The table is twice as large as necessary, so that almost no bucket is evicted.
    let rule = Rule::per_second(1).burst(10_000);
    let throttle = Throttle::builder().rule(rule).table(table_for(2 * count)).build()?;
    let exchange = internals::exchange(&throttle);
    exchange.keep_alive(exchange.now());
    let rule = *exchange.rules().first().ok_or("a rule")?;
    let (mut applied, mut drained) = (Vec::new(), Vec::new());
    let mut entries = Vec::new();
    let mut hits = 0;
    for round in 0..=rounds() {
        fill(count, |tag| throttle.allow(tag).unwrap_or(false))?;
        entries.clear();
        entries.reserve(count as usize);
        let start = Instant::now();
        exchange.drain(exchange.now(), false, |_, _| true, |entry| entries.push(entry));
        let drain = entries.len() as f64 / start.elapsed().as_secs_f64();
        hits += entries.iter().map(|entry: &DrainedEntry| entry.hits * entry.quantum).sum::<u64>();
        // Entries of peers are not in the order of our lines.
        shuffle(&mut entries);
        let charges = entries.iter().map(|entry| PeerEntry {
            fingerprint: entry.fingerprint,
            units: entry.hits * entry.quantum,
            saturated: entry.saturated,
        });
        let (start, now) = (Instant::now(), exchange.now());
        exchange.charge(&rule, now, now, false, charges);
        let apply = entries.len() as f64 / start.elapsed().as_secs_f64();
        exchange.keep_alive(now);
        if round > 0 {
            applied.push(apply);
            drained.push(drain);
        }
    }
    // About one bucket in a million evicts another bucket.
    let allowed = throttle.stats().allowed;
    match hits <= allowed && allowed - hits <= allowed / 100_000 {
        true => Ok((median(applied), median(drained))),
        false => Err(format!("{hits} of {allowed} hits were drained").into()),
    }
}

/// Returns the bytes per tag when six tenths of the slots are in use.
pub(crate) fn bytes_per_tag() -> Result<f64> {
    let throttle = dthrottle(table_for(1 << 20))?;
    let (bytes, slots) = internals::table_size(&throttle);
    Ok(bytes as f64 / (slots as f64 * 0.6))
}

fn shuffle(entries: &mut [DrainedEntry]) {
    let mut seed = 0x5eed_u64;
    for i in (1..entries.len()).rev() {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        entries.swap(i, (seed >> 33) as usize % (i + 1));
    }
}
