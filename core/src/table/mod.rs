//! Where the buckets live.
//!
//! The interface is what a lock-free table in shared memory can offer: one atomic step on one
//! bucket at a time, buckets known only by fingerprint and rule, no deletion. A bucket whose TAT
//! is in the past equals an absent one and may be dropped by whoever needs the room.
//!
//! This table is private to the process, in shards behind locks that are held for one step.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::bucket::{Scale, Tat};

const SHARDS: usize = 64;
/// How often a full shard is searched for buckets in the past, at most.
const SEARCH_NS: u64 = 100_000_000;

/// The name of a bucket in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) fingerprint: u64,
    /// Index into the table's rules.
    pub(crate) rule: u16,
}

#[derive(Debug, Default)]
struct Shard {
    buckets: HashMap<Key, Tat, BuildHasherDefault<KeyHasher>>,
    searched: Option<u64>,
}

/// A bounded set of buckets.
#[derive(Debug)]
pub(crate) struct Table {
    rules: Vec<Scale>,
    shards: Vec<Mutex<Shard>>,
    shard_room: usize,
}

impl Table {
    /// A table for about so many buckets of these rules.
    pub(crate) fn new(rules: Vec<Scale>, room: usize) -> Table {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Table { rules, shards, shard_room: (room / SHARDS).max(1) }
    }

    /// The TAT of a bucket.
    pub(crate) fn read(&self, key: Key) -> Tat {
        self.shard(key).buckets.get(&key).copied().unwrap_or(0)
    }

    /// One atomic step: `step` sees the TAT and gives the next one and an answer. `None`: there is
    /// no room for the bucket, and nothing was done.
    pub(crate) fn update<R>(
        &self,
        key: Key,
        now: u64,
        step: impl FnOnce(Tat) -> (Tat, R),
    ) -> Option<R> {
        let mut shard = self.shard(key);
        if let Some(tat) = shard.buckets.get_mut(&key) {
            let (next, answer) = step(*tat);
            *tat = next;
            return Some(answer);
        }
        if shard.buckets.len() >= self.shard_room {
            self.make_room(&mut shard, now);
        }
        let full = shard.buckets.len() >= self.shard_room;
        let (next, answer) = step(0);
        if next == 0 {
            return Some(answer);
        }
        if full {
            return None;
        }
        shard.buckets.insert(key, next);
        Some(answer)
    }

    /// How many buckets are not full.
    pub(crate) fn live(&self, now: u64) -> usize {
        let live = |shard: &Mutex<Shard>| {
            let shard = locked(shard);
            shard.buckets.iter().filter(|(key, tat)| !self.is_past(**key, **tat, now)).count()
        };
        self.shards.iter().map(live).sum()
    }

    fn make_room(&self, shard: &mut Shard, now: u64) {
        if shard.searched.is_some_and(|at| now.saturating_sub(at) < SEARCH_NS) {
            return;
        }
        shard.searched = Some(now);
        shard.buckets.retain(|key, tat| !self.is_past(*key, *tat, now));
    }

    fn is_past(&self, key: Key, tat: Tat, now: u64) -> bool {
        self.rules.get(usize::from(key.rule)).is_none_or(|rule| tat <= rule.ticks(now))
    }

    fn shard(&self, key: Key) -> MutexGuard<'_, Shard> {
        // Bits that the map does not look at first.
        locked(&self.shards[(key.fingerprint >> 32) as usize % SHARDS])
    }
}

/// Fingerprints are hashes already.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 ^= fingerprint;
    }

    fn write_u16(&mut self, rule: u16) {
        self.0 ^= u64::from(rule);
    }
}

/// A step never panics half way, so a poisoned shard is as good as any.
fn locked(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rate::Rate;

    const SECOND: u64 = 1_000_000_000;

    fn table(room: usize) -> Table {
        let rate = Rate::new(1, Duration::from_secs(1));
        Table::new(vec![Scale::new(&rate, 10)], room)
    }

    /// A fingerprint that belongs into this shard.
    fn shard(number: u64) -> u64 {
        number << 32
    }

    /// Charges one unit to a new bucket; false when there was no room.
    fn charge(table: &Table, fingerprint: u64, now: u64) -> bool {
        let key = Key { fingerprint, rule: 0 };
        table.update(key, now, |tat| (tat.max(now) + SECOND, ())).is_some()
    }

    #[test]
    fn a_full_table_says_so_and_forgets_nobody() {
        let table = table(SHARDS);
        assert!((0..SHARDS as u64).all(|i| charge(&table, shard(i), 0)));
        assert!(!charge(&table, shard(5) + 1, 0));
        assert!(charge(&table, shard(5), 0), "a bucket that is there is always found");
        assert_eq!(table.read(Key { fingerprint: shard(5), rule: 0 }), 2 * SECOND);
        assert_eq!(table.live(0), SHARDS);
    }

    #[test]
    fn buckets_in_the_past_make_room() {
        let table = table(SHARDS);
        for round in 0..10 {
            let now = round * 2 * SECOND;
            assert!((0..SHARDS as u64).all(|i| charge(&table, shard(i) + round, now)));
        }
        assert_eq!(table.live(100 * SECOND), 0);
    }
}
