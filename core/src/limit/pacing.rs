//! Pacing: nodes take turns at admitting a tag that was refused recently, so that all nodes admit
//! about equally much of it.
//!
//! Every 25 ms, each node draws a random share of the tolerance for such a tag. The node with the
//! largest share admits first, and the other nodes find the bucket empty. The price is that such a
//! tag may be refused for up to the tolerance longer, although a unit is available.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::table::fingerprint::hash_of;

/// Number of remembered tags. A tag replaces another one with the same entry.
const ENTRIES: usize = 4096;
/// How long a refusal is remembered, in milliseconds.
const REFUSAL_MS: u32 = 1000;
/// The duration of a turn, in nanoseconds.
const TURN_NS: u64 = 25_000_000;

/// The tags that this process refused recently.
#[derive(Debug)]
pub(crate) struct Pacing {
    /// Each entry holds the upper half of a fingerprint and the time of the refusal in
    /// milliseconds.
    refused: Box<[AtomicU64]>,
}

impl Pacing {
    pub(crate) fn new() -> Pacing {
        Pacing { refused: (0..ENTRIES).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Records a refusal.
    pub(crate) fn refused(&self, fingerprint: u64, now: u64) {
        let word = fingerprint >> 32 << 32 | u64::from(millis(now));
        // Relaxed here and below: the value may be slightly out of date.
        self.entry(fingerprint).store(word, Ordering::Relaxed);
    }

    /// The share of the tolerance that this node may use for a tag. A tag that was not refused
    /// recently gets all of it.
    pub(crate) fn share(&self, tolerance: u64, fingerprint: u64, node: u64, now: u64) -> u64 {
        let word = self.entry(fingerprint).load(Ordering::Relaxed);
        let age = millis(now).wrapping_sub(word as u32);
        if tolerance == 0 || word >> 32 != fingerprint >> 32 || age > REFUSAL_MS {
            return tolerance;
        }
        let draw = [fingerprint, node, now / TURN_NS].map(u64::to_le_bytes);
        let share = hash_of(draw.as_flattened());
        ((u128::from(tolerance) * u128::from(share)) >> 64) as u64
    }

    fn entry(&self, fingerprint: u64) -> &AtomicU64 {
        &self.refused[(fingerprint >> 16) as usize % ENTRIES]
    }
}

fn millis(now: u64) -> u32 {
    (now / 1_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn only_refused_tags_take_turns() {
        let pacing = Pacing::new();
        let (good, bad) = (0x1111_2222_3333_4444, 0x5555_6666_7777_8888);
        let now = 5000 * SECOND;
        pacing.refused(bad, now);
        assert_eq!(pacing.share(1000, good, 1, now), 1000);
        assert!(pacing.share(1000, bad, 1, now) < 1000);
        assert_eq!(
            pacing.share(1000, bad, 1, now + 2 * SECOND),
            1000,
            "the refusal is too long ago"
        );
        assert_eq!(pacing.share(0, bad, 1, now), 0);
    }

    #[test]
    fn every_node_gets_about_the_same_number_of_turns() {
        let pacing = Pacing::new();
        let tag = 0x5555_6666_7777_8888;
        let mut first = [0; 4];
        for turn in 0..4000 {
            let now = turn * TURN_NS;
            pacing.refused(tag, now);
            let shares = [1, 2, 3, 4].map(|node| pacing.share(1 << 40, tag, node, now));
            let best = (0..4).max_by_key(|node| shares[*node]).unwrap();
            first[best] += 1;
        }
        assert!(first.iter().all(|turns| (900..1100).contains(turns)), "{first:?}");
    }
}
