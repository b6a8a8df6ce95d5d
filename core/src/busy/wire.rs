//! The encoding of busy responses that nodes send to each other (docs/protocol.md).

use crate::cluster::MAX_PAYLOAD;
use crate::cluster::wire::bytes::{Reader, put_varint};

/// The longest age or pause, in microseconds (12 days).
const MAX_US: u64 = 1 << 40;
/// The smallest and greatest length of an entry.
const MIN_ENTRY_LEN: usize = 8 + 1 + 1 + 1;
const MAX_ENTRY_LEN: usize = 8 + 1 + 6 + 6;
/// The maximum number of entries of a payload. That many always fit, even with the longest times.
pub const MAX_ENTRIES: usize = (MAX_PAYLOAD - 1) / MAX_ENTRY_LEN;

/// Busy responses of one service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyEntry {
    /// The fingerprint of the service's name.
    pub service: u64,
    /// The number of busy responses, at least one.
    pub answers: u8,
    /// The time since the last of them, in microseconds.
    pub age_us: u64,
    /// The time for which the service wants no requests, in microseconds; zero if it did not say.
    pub pause_us: u64,
}

/// Writes entries, at most the first [`MAX_ENTRIES`]. Longer times are shortened.
pub fn write_busy(entries: &[BusyEntry]) -> Vec<u8> {
    let entries = &entries[..entries.len().min(MAX_ENTRIES)];
    let mut out = Vec::new();
    put_varint(&mut out, entries.len() as u64);
    for entry in entries {
        out.extend_from_slice(&entry.service.to_be_bytes());
        out.push(entry.answers);
        put_varint(&mut out, entry.age_us.min(MAX_US));
        put_varint(&mut out, entry.pause_us.min(MAX_US));
    }
    out
}

/// Parses entries. Returns `None` if they are malformed. Additional bytes are ignored.
pub fn parse_busy(bytes: &[u8]) -> Option<Vec<BusyEntry>> {
    let mut reader = Reader::new(bytes);
    let count = reader.count(MIN_ENTRY_LEN).ok()?;
    let mut read = || {
        let entry = BusyEntry {
            service: reader.u64().ok()?,
            answers: reader.u8().ok()?,
            age_us: reader.varint().ok()?,
            pause_us: reader.varint().ok()?,
        };
        let is_valid = entry.answers > 0 && entry.age_us.max(entry.pause_us) <= MAX_US;
        is_valid.then_some(entry)
    };
    (0..count).map(|_| read()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(many: u64, us: u64) -> Vec<BusyEntry> {
        let entry =
            |n: u64| BusyEntry { service: !n, answers: 1 + n as u8, age_us: us, pause_us: us };
        (0..many).map(entry).collect()
    }

    #[test]
    fn entries_are_read_as_they_were_written() {
        for entries in [entries(0, 0), entries(40, MAX_US)] {
            let mut bytes = write_busy(&entries);
            assert_eq!(parse_busy(&bytes).as_ref(), Some(&entries));
            for len in 0..bytes.len() {
                assert_eq!(parse_busy(&bytes[..len]), None, "{len} bytes");
            }
            bytes.push(9);
            assert_eq!(parse_busy(&bytes), Some(entries), "later additions are ignored");
        }
    }

    #[test]
    fn the_most_entries_with_the_longest_times_fit_into_a_payload() {
        let bytes = write_busy(&entries(200, u64::MAX));
        assert!(bytes.len() <= MAX_PAYLOAD && bytes.len() + MAX_ENTRY_LEN > MAX_PAYLOAD);
        assert_eq!(parse_busy(&bytes), Some(entries(MAX_ENTRIES as u64, MAX_US)));
    }

    #[test]
    fn impossible_values_are_malformed() {
        let good = BusyEntry { service: 1, answers: 1, age_us: 0, pause_us: 0 };
        let bytes = write_busy(&[good]);
        assert_eq!(parse_busy(&bytes), Some(vec![good]));
        for (age_us, pause_us) in [(MAX_US + 1, 0), (0, MAX_US + 1)] {
            let mut bytes = bytes[..10].to_vec();
            put_varint(&mut bytes, age_us);
            put_varint(&mut bytes, pause_us);
            assert_eq!(parse_busy(&bytes), None, "{age_us} {pause_us}");
        }
        assert_eq!(parse_busy(&write_busy(&[BusyEntry { answers: 0, ..good }])), None);
    }
}
