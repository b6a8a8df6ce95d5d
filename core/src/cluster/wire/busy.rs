//! BUSY: services that said they are busy, to the sender itself.

use super::bytes::{Reader, put_varint, varint_len};
use super::{Dropped, MAX_BODY};

/// The longest age or pause, in microseconds: 12 days.
pub const MAX_BUSY_US: u64 = 1 << 40;
/// The fewest bytes of an entry.
const ENTRY: usize = 8 + 1 + 1 + 1;

/// What services answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusyNews {
    /// Counts what the sender tells, from 1: what comes twice counts once.
    pub number: u64,
    /// The services.
    pub entries: Vec<BusyEntry>,
}

/// What one service answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyEntry {
    /// The fingerprint of its name.
    pub service: u64,
    /// How many busy answers there were, at least one.
    pub answers: u8,
    /// Since the last of them, when the datagram was sent.
    pub age_us: u64,
    /// How long nothing shall be sent, from then on; zero: it did not say.
    pub pause_us: u64,
}

impl BusyEntry {
    fn len(&self) -> usize {
        9 + varint_len(self.age_us) + varint_len(self.pause_us)
    }
}

/// Writes as many of the entries as fit, and says how many.
pub fn write_busy(number: u64, entries: &[BusyEntry], out: &mut Vec<u8>) -> usize {
    out.clear();
    put_varint(out, number);
    let count_at = out.len();
    // The number of entries: no datagram has room for 128.
    out.push(0);
    for (written, entry) in entries.iter().enumerate() {
        if out.len() + entry.len() > MAX_BODY {
            return written;
        }
        out.extend_from_slice(&entry.service.to_be_bytes());
        out.push(entry.answers);
        put_varint(out, entry.age_us);
        put_varint(out, entry.pause_us);
        out[count_at] += 1;
    }
    entries.len()
}

/// Reads all of a body.
pub fn parse_busy(body: &[u8]) -> Result<BusyNews, Dropped> {
    let mut reader = Reader::new(body);
    let number = reader.varint()?;
    let count = reader.count(ENTRY)?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let entry = BusyEntry {
            service: reader.u64()?,
            answers: reader.u8()?,
            age_us: reader.varint()?,
            pause_us: reader.varint()?,
        };
        if entry.answers == 0 || entry.age_us > MAX_BUSY_US || entry.pause_us > MAX_BUSY_US {
            return Err(Dropped::Malformed);
        }
        entries.push(entry);
    }
    if number == 0 { Err(Dropped::Malformed) } else { Ok(BusyNews { number, entries }) }
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
    fn news_come_back() {
        let mut out = Vec::new();
        for (number, entries) in [(1, entries(0, 0)), (u64::MAX, entries(40, MAX_BUSY_US))] {
            assert_eq!(write_busy(number, &entries, &mut out), entries.len());
            let news = BusyNews { number, entries };
            assert_eq!(parse_busy(&out).as_ref(), Ok(&news));
            for len in 0..out.len() {
                assert_eq!(parse_busy(&out[..len]), Err(Dropped::Malformed), "{len} bytes");
            }
            out.push(9);
            assert_eq!(parse_busy(&out), Ok(news), "what is added later is ignored");
        }
    }

    #[test]
    fn what_does_not_fit_waits() {
        let mut out = Vec::new();
        for (us, fitting) in [(0, 107), (MAX_BUSY_US, 56)] {
            let entries = entries(200, us);
            assert_eq!(write_busy(1, &entries, &mut out), fitting);
            assert!(out.len() <= MAX_BODY);
            assert_eq!(parse_busy(&out).unwrap().entries, entries[..fitting]);
        }
    }

    #[test]
    fn what_cannot_be_is_malformed() {
        let good = BusyEntry { service: 1, answers: 1, age_us: 0, pause_us: 0 };
        let bad = [
            (0, good),
            (1, BusyEntry { answers: 0, ..good }),
            (1, BusyEntry { age_us: MAX_BUSY_US + 1, ..good }),
            (1, BusyEntry { pause_us: MAX_BUSY_US + 1, ..good }),
        ];
        let mut out = Vec::new();
        for (number, entry) in bad {
            write_busy(number, &[entry], &mut out);
            assert_eq!(parse_busy(&out), Err(Dropped::Malformed), "{entry:?}");
        }
    }
}
