//! Which packets of a sender have been seen: a datagram that comes twice counts once.

/// Packets so far below the greatest number are taken for old ones.
const WINDOW: u64 = 2048;
const WORDS: usize = (WINDOW / 64) as usize;

/// The packets of one sender.
#[derive(Clone, Debug)]
pub(super) struct Replay {
    top: u64,
    /// One bit a packet, by its number modulo the window.
    seen: [u64; WORDS],
}

impl Replay {
    /// Everything up to a packet that is known to be fresh counts as seen.
    pub(super) fn after(packet: u64) -> Replay {
        Replay { top: packet, seen: [u64::MAX; WORDS] }
    }

    /// Whether a packet is new; from now on it is not.
    pub(super) fn is_new(&mut self, packet: u64) -> bool {
        if packet.saturating_add(WINDOW) <= self.top {
            return false;
        }
        if packet > self.top {
            let passed = (packet - self.top).min(WINDOW);
            for number in packet - passed + 1..=packet {
                let (word, bit) = place(number);
                self.seen[word] &= !bit;
            }
            self.top = packet;
        }
        let (word, bit) = place(packet);
        let new = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        new
    }
}

fn place(packet: u64) -> (usize, u64) {
    ((packet % WINDOW / 64) as usize, 1 << (packet % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_counts_once_in_any_order() {
        let mut replay = Replay::after(100);
        assert!(!replay.is_new(100) && !replay.is_new(1));
        assert!(replay.is_new(103));
        assert!(replay.is_new(101), "late is not old");
        assert!(!replay.is_new(101) && !replay.is_new(103));
        assert!(replay.is_new(102));
        assert!(replay.is_new(103 + WINDOW));
        assert!(!replay.is_new(103) && replay.is_new(104));
        assert!(replay.is_new(u64::MAX));
        assert!(!replay.is_new(u64::MAX) && !replay.is_new(5000));
    }
}
