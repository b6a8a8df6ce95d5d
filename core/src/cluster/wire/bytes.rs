//! Reading and writing of fields: big-endian numbers, varints (LEB128), origins, ranges and
//! entries.
//!
//! A varint has exactly one encoding: at most ten bytes, of which the last is not zero unless it is
//! the only one.

use super::DropCause;
use crate::cluster::{Origin, Ranges};

/// The bytes of an origin.
pub(super) const ORIGIN: usize = 16;
/// The fewest bytes of an entry.
pub(super) const ENTRY: usize = 8;

/// Reads fields from the start of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Reader<'a> {
        Reader { rest: body }
    }

    /// Returns true if everything has been read.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the bytes that have not been read yet.
    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DropCause> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(DropCause::Malformed)?;
        self.rest = rest;
        Ok(*array)
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], DropCause> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(DropCause::Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, DropCause> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, DropCause> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, DropCause> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, DropCause> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn origin(&mut self) -> Result<Origin, DropCause> {
        Ok(Origin { node: self.u64()?, incarnation: self.u64()? })
    }

    pub(crate) fn varint(&mut self) -> Result<u64, DropCause> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte may contain one bit only.
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                let over_long = byte == 0 && shift > 0;
                return if over_long { Err(DropCause::Malformed) } else { Ok(value) };
            }
        }
        Err(DropCause::Malformed)
    }

    /// Reads the number of items of at least `size` bytes each. Fails if the rest is too short for
    /// that many.
    pub(crate) fn count(&mut self, size: usize) -> Result<usize, DropCause> {
        let count = usize::try_from(self.varint()?).map_err(|_| DropCause::Malformed)?;
        if count > self.rest.len() / size { Err(DropCause::Malformed) } else { Ok(count) }
    }

    /// Reads ranges, which must be sorted and not adjacent, and must not exceed `top`.
    pub(super) fn ranges(&mut self, top: u64) -> Result<Ranges, DropCause> {
        let count = self.count(2)?;
        let mut ranges = Ranges::with_capacity(count);
        let mut least = Some(1);
        for _ in 0..count {
            let first = self.varint()?;
            let last = first.checked_add(self.varint()?).ok_or(DropCause::Malformed)?;
            if last > top || least.is_none_or(|least| first < least) {
                return Err(DropCause::Malformed);
            }
            ranges.push((first, last));
            least = last.checked_add(2);
        }
        Ok(ranges)
    }

    /// Reads a fingerprint and a varint. The seven bytes of the fingerprint and the first byte of
    /// the varint are read as one word.
    #[inline]
    pub(super) fn entry(&mut self) -> Result<(u64, u64), DropCause> {
        let (word, rest) = self.rest.split_first_chunk().ok_or(DropCause::Malformed)?;
        let word = u64::from_be_bytes(*word);
        let fingerprint = word & !0xff;
        if word & 0x80 == 0 {
            self.rest = rest;
            return Ok((fingerprint, word & 0x7f));
        }
        self.rest = self.rest.get(ENTRY - 1..).ok_or(DropCause::Malformed)?;
        Ok((fingerprint, self.varint()?))
    }
}

pub(super) fn put_origin(out: &mut Vec<u8>, origin: Origin) {
    out.extend_from_slice(&origin.node.to_be_bytes());
    out.extend_from_slice(&origin.incarnation.to_be_bytes());
}

/// The encoded length of a varint.
pub(super) const fn varint_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn range_len(range: &(u64, u64)) -> usize {
    varint_len(range.0) + varint_len(range.1 - range.0)
}

/// Returns how many of the ranges fit into `room` bytes, including the varint for their number.
pub(super) fn ranges_fitting<'a>(
    ranges: impl Iterator<Item = &'a (u64, u64)>,
    room: usize,
) -> usize {
    let ends = ranges.enumerate().scan(0, |end, (before, range)| {
        *end += range_len(range);
        Some(*end + varint_len(before as u64 + 1))
    });
    ends.take_while(|end| *end <= room).count()
}

pub(super) fn put_ranges(out: &mut Vec<u8>, ranges: &[(u64, u64)]) {
    put_varint(out, ranges.len() as u64);
    for (first, last) in ranges {
        put_varint(out, *first);
        put_varint(out, last - first);
    }
}

/// The encoded length of an entry.
#[inline]
pub(super) const fn entry_len(value: u64) -> usize {
    if value < 0x80 { ENTRY } else { ENTRY - 1 + varint_len(value) }
}

/// Appends an entry. The lowest byte of the fingerprint is not sent.
#[inline]
pub(super) fn put_entry(out: &mut Vec<u8>, fingerprint: u64, value: u64) {
    let fingerprint = fingerprint & !0xff;
    if value < 0x80 {
        out.extend_from_slice(&(fingerprint | value).to_be_bytes());
    } else {
        out.extend_from_slice(&fingerprint.to_be_bytes()[..ENTRY - 1]);
        put_varint(out, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint(bytes: &[u8]) -> Result<u64, DropCause> {
        Reader::new(bytes).varint()
    }

    #[test]
    fn a_varint_is_read_as_it_was_written() {
        let edges = (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, 1 << bit | 1]);
        for value in edges.chain([u64::MAX, 300]) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), varint_len(value), "{value}");
            assert_eq!(varint(&out), Ok(value));
            assert_eq!(varint(&out[..out.len() - 1]), Err(DropCause::Malformed));
        }
    }

    #[test]
    fn only_the_shortest_encoding_of_a_varint_is_accepted() {
        assert_eq!(varint(&[0xac, 0x02]), Ok(300));
        assert_eq!(varint(&[0x80, 0x00]), Err(DropCause::Malformed));
        assert_eq!(varint(&[0xac, 0x82, 0x00]), Err(DropCause::Malformed));
        let mut most = [0xff; 10];
        most[9] = 1;
        assert_eq!(varint(&most), Ok(u64::MAX));
        most[9] = 2;
        assert_eq!(varint(&most), Err(DropCause::Malformed));
        assert_eq!(varint(&[0x80; 11]), Err(DropCause::Malformed));
        most[9] = 0x81;
        assert_eq!(varint(&[&most[..], &[0]].concat()), Err(DropCause::Malformed));
    }

    #[test]
    fn ranges_must_be_sorted_and_not_adjacent() {
        let read = |ranges: &[(u64, u64)], top| {
            let mut out = Vec::new();
            put_ranges(&mut out, ranges);
            Reader::new(&out).ranges(top)
        };
        let good = [(1, 1), (3, 9), (u64::MAX, u64::MAX)];
        assert_eq!(read(&good, u64::MAX), Ok(good.to_vec()));
        assert_eq!(read(&good, u64::MAX - 1), Err(DropCause::Malformed));
        for bad in [
            [(0, 0), (5, 5)],
            [(1, 2), (3, 3)],
            [(3, 4), (1, 1)],
            [(1, u64::MAX), (5, 5)],
            [(1, u64::MAX - 1), (u64::MAX, u64::MAX)],
        ] {
            assert_eq!(read(&bad, u64::MAX), Err(DropCause::Malformed), "{bad:?}");
        }
        let overflow = [&[1][..], &[0xff; 9], &[1, 1]].concat();
        assert_eq!(Reader::new(&overflow).ranges(u64::MAX), Err(DropCause::Malformed));
    }

    #[test]
    fn a_count_greater_than_the_remaining_bytes_allow_is_malformed() {
        assert_eq!(Reader::new(&[2, 0, 0, 0, 0]).count(2), Ok(2));
        assert_eq!(Reader::new(&[3, 0, 0, 0, 0]).count(2), Err(DropCause::Malformed));
        let huge = [&[0xff; 9][..], &[1]].concat();
        assert_eq!(Reader::new(&huge).count(1), Err(DropCause::Malformed));
    }
}
