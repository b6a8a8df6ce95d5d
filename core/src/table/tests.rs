//! Tests of the table, in private memory with few slots.

mod claims;
mod exchange;
mod hostile;
mod pending;
mod property;
mod reclaim;
mod rule;
mod threads;

use std::time::Duration;

use super::heap::Heap;
use super::*;
use crate::Rate;

const SECOND: u64 = 1_000_000_000;

fn empty(lines: usize) -> Table {
    let geometry = Geometry::new(lines);
    Table::in_memory(Heap::new(geometry.bytes()), geometry).unwrap()
}

fn per_second(burst: u64) -> Scale {
    Scale::new(&Rate::new(1, Duration::from_secs(1)), burst)
}

/// The n-th fingerprint whose home is this line.
fn at_home(line: usize, lines: usize, n: u64) -> u64 {
    let first = ((line as u128) << 64).div_ceil(lines as u128) as u64;
    (first.div_ceil(1 << 10) + n) << 10
}

/// Pseudo-random numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// A table with one rule of one unit per second.
struct TestTable {
    table: Table,
    scale: Scale,
    rule: u16,
}

impl TestTable {
    fn new(lines: usize, burst: u64) -> TestTable {
        let (table, scale) = (empty(lines), per_second(burst));
        let rule = table.rule_index(1, &scale).unwrap();
        TestTable { table, scale, rule }
    }

    fn key(&self, fingerprint: u64) -> Key {
        Key { fingerprint, rule: self.rule }
    }

    /// Charges units in any case. Returns `None` if there is no room.
    fn charge(&self, fingerprint: u64, now: u64, units: u64) -> Option<()> {
        let hits = i64::try_from(units).unwrap();
        self.table.update(self.key(fingerprint), &self.scale, now, Some(now), |tat| BucketUpdate {
            tat: self.scale.charge(tat, now, units),
            hits,
            answer: (),
        })
    }

    /// Takes a unit if there is one. Returns true if the check passes or the table has no room.
    fn take(&self, fingerprint: u64, now: u64) -> bool {
        let window = self.scale.window(now, now);
        let step = |tat| match self.scale.passes(tat, window, 1) {
            true => BucketUpdate { tat: self.scale.take(tat, window, 1), hits: 1, answer: true },
            false => BucketUpdate { tat, hits: 0, answer: false },
        };
        self.table.update(self.key(fingerprint), &self.scale, now, Some(now), step).unwrap_or(true)
    }

    /// Units that a tag has used.
    fn used(&self, fingerprint: u64, now: u64) -> i64 {
        let tat = self.table.read(self.key(fingerprint), &self.scale, now);
        self.scale.burst() as i64 - self.scale.balance(tat, now)
    }

    /// Fingerprint and hits of all drained buckets, sorted by fingerprint.
    fn drain(&self, all: bool) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        self.table.drain(all, |_| true, |bucket| out.push((bucket.key.fingerprint, bucket.hits)));
        out.sort_unstable();
        out
    }

    /// Fingerprint and used units of all buckets that are not full, sorted by fingerprint.
    fn all_used(&self, now: u64) -> Vec<(u64, i64)> {
        let mut out = Vec::new();
        self.table.each(now, |bucket, _, scale| {
            let used = scale.burst() as i64 - scale.balance(bucket.tat, now);
            out.push((bucket.key.fingerprint, used));
        });
        out.sort_unstable();
        out
    }

    /// Number of slots of a line that are not empty.
    fn taken(&self, line: usize) -> usize {
        self.table.region.lines()[line].0.iter().filter(|cell| !cell.load().is_empty()).count()
    }

    /// Claims a slot like a thread that has found no bucket of the tag. Another thread may have
    /// created one since.
    fn claim_late(&self, fingerprint: u64, now: u64, units: u64) -> Claim {
        let key = self.key(fingerprint);
        let tat = self.scale.charge(0, now, units);
        let location = self.table.location(key);
        self.table.claim_slot(key, now, Some(now), location, tat, units)
    }
}
