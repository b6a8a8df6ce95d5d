//! Deterministic corruption of bytes, like a fuzzer's but without its feedback.

/// A sequence of random corruptions.
pub(crate) struct Corruption {
    state: u64,
}

impl Corruption {
    pub(crate) fn new(seed: u64) -> Corruption {
        Corruption { state: seed }
    }

    /// Returns a number below `below`, by SplitMix64.
    pub(crate) fn random(&mut self, below: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) as usize % below.max(1)
    }

    /// Applies one to four random corruptions, some of which append a part of another seed.
    pub(crate) fn apply_to(&mut self, seed: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..=self.random(4) {
            let at = self.random(bytes.len() + 1);
            let len = 1 + self.random(12);
            let end = (at + len).min(bytes.len());
            match self.random(8) {
                0 => bytes.truncate(at),
                1 => drop(bytes.drain(at..end)),
                2 => {
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                3 => {
                    let other = &others[self.random(others.len())];
                    let from = self.random(other.len() + 1);
                    bytes.truncate(at);
                    bytes.extend_from_slice(&other[from..]);
                }
                // Large counts and varints.
                4 => bytes[at..end].fill(0xff),
                5 => bytes[at..end].fill([0, 1, 0x7f, 0x80][self.random(4)]),
                6 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (len % 8)),
                _ => {
                    let value = self.random(256) as u8;
                    bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = value);
                }
            }
        }
        bytes
    }
}
