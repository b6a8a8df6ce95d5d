//! Detects replayed datagrams: each packet number of a sender counts once.

/// Packet numbers this far below the greatest one count as already seen.
const WINDOW: u64 = 2048;
const WORDS: usize = (WINDOW / 64) as usize;

/// The packet numbers of one sender that have been seen.
#[derive(Clone, Debug)]
pub(super) struct Replay {
    top: u64,
    /// One bit per packet number, at the number modulo `WINDOW`.
    seen: [u64; WORDS],
}

impl Replay {
    /// Creates a filter in which all numbers up to `packet` count as seen.
    pub(super) fn after(packet: u64) -> Replay {
        Replay { top: packet, seen: [u64::MAX; WORDS] }
    }

    /// Returns true if a packet number is new, and marks it as seen.
    pub(super) fn is_new(&mut self, packet: u64) -> bool {
        if packet.saturating_add(WINDOW) <= self.top {
            return false;
        }
        if packet > self.top {
            let passed = (packet - self.top).min(WINDOW);
            for number in packet - passed + 1..=packet {
                let (word, bit) = word_and_bit(number);
                self.seen[word] &= !bit;
            }
            self.top = packet;
        }
        let (word, bit) = word_and_bit(packet);
        let new = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        new
    }
}

fn word_and_bit(packet: u64) -> (usize, u64) {
    ((packet % WINDOW / 64) as usize, 1 << (packet % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_number_counts_once_in_any_order() {
        let mut replay = Replay::after(100);
        assert!(!replay.is_new(100) && !replay.is_new(1));
        assert!(replay.is_new(103));
        assert!(replay.is_new(101), "a number may arrive late");
        assert!(!replay.is_new(101) && !replay.is_new(103));
        assert!(replay.is_new(102));
        assert!(replay.is_new(103 + WINDOW));
        assert!(!replay.is_new(103) && replay.is_new(104));
        assert!(replay.is_new(u64::MAX));
        assert!(!replay.is_new(u64::MAX) && !replay.is_new(5000));
    }
}
