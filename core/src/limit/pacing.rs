//! Pacing of proven offenders: tags that were refused a moment ago have their turns at one node
//! after the other, so that all nodes admit about as much of them.
//!
//! A turn is a share of the tolerance, drawn anew every few milliseconds by every node for itself.
//! Whoever has the largest share admits first, and the others see the bucket empty. The price: such
//! a tag waits for its turn, up to the tolerance longer, although there may be something left.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::table::fingerprint::hash_of;

/// So many refused tags are remembered, each in a place of its own unless two meet.
const ENTRIES: usize = 4096;
/// For how long a refusal counts.
const REFUSAL_MS: u32 = 1000;
/// How long a turn is.
const TURN_NS: u64 = 25_000_000;

/// The tags that this process refused lately.
#[derive(Debug)]
pub(crate) struct Pacing {
    /// Half of a fingerprint, and when in milliseconds.
    refused: Box<[AtomicU64]>,
}

impl Pacing {
    pub(crate) fn new() -> Pacing {
        Pacing { refused: (0..ENTRIES).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Notes a refusal.
    pub(crate) fn refused(&self, fingerprint: u64, now: u64) {
        let word = fingerprint >> 32 << 32 | u64::from(millis(now));
        // Relaxed: a moment sooner or later does not matter, here and below.
        self.entry(fingerprint).store(word, Ordering::Relaxed);
    }

    /// What is left of the tolerance for a tag at a node.
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
    fn only_who_was_refused_waits_for_a_turn() {
        let pacing = Pacing::new();
        let (good, bad) = (0x1111_2222_3333_4444, 0x5555_6666_7777_8888);
        let now = 5000 * SECOND;
        pacing.refused(bad, now);
        assert_eq!(pacing.share(1000, good, 1, now), 1000);
        assert!(pacing.share(1000, bad, 1, now) < 1000);
        assert_eq!(pacing.share(1000, bad, 1, now + 2 * SECOND), 1000, "it is over");
        assert_eq!(pacing.share(0, bad, 1, now), 0);
    }

    #[test]
    fn turns_are_shared_evenly() {
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
