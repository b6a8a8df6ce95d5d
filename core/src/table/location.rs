//! Maps a fingerprint to its two lines, and a slot in a line back to its fingerprint.
//!
//! A table uses the upper 54 bits of a 64-bit fingerprint. A slot stores the lower 38 of them. The
//! other 16 follow from the line number if the table has at least 2^16 lines.

use super::slot::{FINGERPRINT_BITS, Mark};

/// The fewest lines from which the upper bits of a fingerprint can be recovered.
pub(crate) const MIN_SHARED_LINES: usize = 1 << (BITS - FINGERPRINT_BITS);

const BITS: u32 = 54;
const UNUSED_BITS: u32 = u64::BITS - BITS;
const STORED: u64 = (1 << FINGERPRINT_BITS) - 1;

/// The home line of a tag, and its mark there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) home: usize,
    pub(super) mark: Mark,
}

impl Location {
    #[inline]
    pub(super) fn of(fingerprint: u64, lines: usize) -> Location {
        let fingerprint = fingerprint >> UNUSED_BITS;
        let home = high(fingerprint << UNUSED_BITS, lines);
        Location { home, mark: Mark::new(fingerprint & STORED) }
    }

    /// Clears the bits of a fingerprint that the table does not use.
    pub(super) fn stored(fingerprint: u64) -> u64 {
        fingerprint >> UNUSED_BITS << UNUSED_BITS
    }

    /// The tag's second line.
    pub(super) fn second(self, lines: usize) -> usize {
        (self.home + offset(self.mark.fingerprint_bits(), lines)) % lines
    }

    /// The fingerprint of the slot with this mark in this line.
    pub(super) fn fingerprint(mark: Mark, line: usize, lines: usize) -> u64 {
        let stored = mark.fingerprint_bits();
        let home = match mark.is_displaced() {
            false => line,
            true => (line + lines - offset(stored, lines)) % lines,
        };
        // The first fingerprint that belongs to this home line. No two of them have the same stored
        // bits.
        let first = ((home as u128) << BITS).div_ceil(lines as u128) as u64;
        let found = (first & !STORED) | stored;
        let found = if found < first { found + STORED + 1 } else { found };
        found << UNUSED_BITS
    }
}

/// Distance from the home line to the second line: at least 1, and less than `lines`.
fn offset(stored: u64, lines: usize) -> usize {
    // Multiplying by an odd constant spreads the bits, so the tags of one line have many second
    // lines.
    1 + high(stored.wrapping_mul(0x9e37_79b9_7f4a_7c15), lines - 1)
}

/// Scales `bits` from 0..2^64 to 0..lines.
#[inline]
fn high(bits: u64, lines: usize) -> usize {
    ((u128::from(bits) * lines as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_recovered_from_its_slot() {
        let mut fingerprint = 0x0123_4567_89ab_cdef_u64;
        for lines in [MIN_SHARED_LINES, MIN_SHARED_LINES + 1, 436_907, 4_166_667] {
            for _ in 0..1000 {
                fingerprint = fingerprint.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let location = Location::of(fingerprint, lines);
                let second = location.second(lines);
                assert!(location.home < lines && second < lines && location.home != second);
                let truth = Location::stored(fingerprint);
                assert_eq!(Location::fingerprint(location.mark, location.home, lines), truth);
                let displaced = location.mark.displaced();
                assert_eq!(Location::fingerprint(displaced, second, lines), truth);
            }
        }
    }

    #[test]
    fn the_smallest_and_the_greatest_fingerprint_have_two_lines() {
        for fingerprint in [0, u64::MAX] {
            for lines in [2, 3, MIN_SHARED_LINES] {
                let location = Location::of(fingerprint, lines);
                let second = location.second(lines);
                assert!(location.home < lines && second < lines && location.home != second);
            }
        }
    }
}
