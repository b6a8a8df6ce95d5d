//! The value of a slot: one bucket in 128 bits, so that one compare-and-swap changes all of it.
//!
//! From the top: 38 bits of the fingerprint, 1 bit that is set in the tag's second line, 12 bits of
//! rule index, 17 bits of pending hits, 60 bits of TAT. An empty slot is all zero. Rule indexes
//! begin at 1.

use crate::limit::bucket::Tat;

const TAT_BITS: u32 = 60;
const PENDING_BITS: u32 = 17;
const RULE_BITS: u32 = 12;
const PENDING_AT: u32 = TAT_BITS;
const RULE_AT: u32 = PENDING_AT + PENDING_BITS;
const MARK_AT: u32 = RULE_AT + RULE_BITS;

/// Number of fingerprint bits that a slot stores.
pub(super) const FINGERPRINT_BITS: u32 = 128 - 1 - MARK_AT;
/// Number of rule indexes. Index 0 is unused, and the last index marks a reserved slot.
pub(crate) const RULES: usize = 1 << RULE_BITS;
/// The maximum number of rules that a table can have at a time.
pub(crate) const MAX_TABLE_RULES: usize = RULES - 2;
/// The rule index of a reserved slot.
const RESERVED: u16 = RULES as u16 - 1;
/// The maximum number of hits that can be pending in one slot.
pub(super) const MAX_PENDING: u64 = (1 << PENDING_BITS) - 1;

/// The first field of a slot: the stored fingerprint bits and the displaced bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(u64);

impl Mark {
    /// The mark in the home line.
    pub(super) fn new(fingerprint_bits: u64) -> Mark {
        Mark(fingerprint_bits << 1)
    }

    /// The mark of the same tag in its second line.
    pub(super) fn displaced(self) -> Mark {
        Mark(self.0 | 1)
    }

    pub(super) fn is_displaced(self) -> bool {
        self.0 & 1 == 1
    }

    pub(super) fn fingerprint_bits(self) -> u64 {
        self.0 >> 1
    }
}

/// The value of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot(pub(super) u128);

impl Slot {
    #[cfg(test)]
    pub(super) const EMPTY: Slot = Slot(0);

    /// `rule` must be from 1 to `RULES - 1`, `pending` at most `MAX_PENDING`.
    pub(super) fn new(mark: Mark, rule: u16, pending: u64, tat: Tat) -> Slot {
        Slot(
            u128::from(mark.0) << MARK_AT
                | u128::from(rule) << RULE_AT
                | u128::from(pending) << PENDING_AT
                | u128::from(tat),
        )
    }

    /// Tests the upper half only, because it is never zero in a slot that is in use.
    pub(super) fn is_empty(self) -> bool {
        self.0 >> 64 == 0
    }

    pub(super) fn mark(self) -> Mark {
        Mark((self.0 >> MARK_AT) as u64)
    }

    pub(super) fn rule(self) -> u16 {
        (self.0 >> RULE_AT) as u16 & (RULES as u16 - 1)
    }

    pub(super) fn pending(self) -> u64 {
        (self.0 >> PENDING_AT) as u64 & MAX_PENDING
    }

    pub(super) fn tat(self) -> Tat {
        self.0 as u64 & ((1 << TAT_BITS) - 1)
    }

    /// The same tag with another rule, pending hits and TAT.
    pub(super) fn with(self, rule: u16, pending: u64, tat: Tat) -> Slot {
        Slot::new(self.mark(), rule, pending, tat)
    }

    #[inline]
    pub(super) fn with_tat(self, tat: Tat) -> Slot {
        Slot(self.0 >> TAT_BITS << TAT_BITS | u128::from(tat))
    }

    /// A slot that is being claimed for a tag. Each claim has its own token.
    pub(super) fn reserved(mark: Mark, token: u64) -> Slot {
        Slot::new(mark, RESERVED, 0, (token << 1 | 1) & ((1 << TAT_BITS) - 1))
    }

    /// Returns true if a claim of the slot is in progress or was given up. Such a slot holds no
    /// bucket.
    pub(super) fn is_reserved(self) -> bool {
        self.rule() == RESERVED
    }

    /// Returns true if the claim of the slot was given up.
    pub(super) fn is_given_up(self) -> bool {
        self.is_reserved() && self.tat() == 0
    }

    /// The value after its claim was given up. The slot stays in use, so that a line never looks
    /// less crowded than it was.
    pub(super) fn given_up(self) -> Slot {
        self.with(RESERVED, 0, 0)
    }
}

/// The upper half of a slot: mark, rule, and the upper part of the pending hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head(pub(super) u64);

impl Head {
    /// Returns true also for an empty slot if the mark is zero.
    pub(super) fn has(self, mark: Mark) -> bool {
        self.0 >> (MARK_AT - 64) == mark.0
    }

    /// Returns true if this is a bucket with this mark under this rule.
    #[inline]
    pub(super) fn is_of(self, mark: Mark, rule: u16) -> bool {
        self.0 >> (RULE_AT - 64) == mark.0 << RULE_BITS | u64::from(rule)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn is_reserved(self) -> bool {
        (self.0 >> (RULE_AT - 64)) as u16 & RESERVED == RESERVED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::bucket::MAX_TAT;

    #[test]
    fn slot_fields_do_not_overlap() {
        let mark = Mark::new((1 << FINGERPRINT_BITS) - 1).displaced();
        let full = Slot::new(mark, RULES as u16 - 1, MAX_PENDING, MAX_TAT);
        assert_eq!(full.0, u128::MAX);
        let slot = Slot::new(Mark::new(0x15_5555_5555), 0x5a5, 0x1_2345, 0x0123_4567_89ab_cdef);
        assert_eq!(slot.mark().fingerprint_bits(), 0x15_5555_5555);
        assert!(!slot.mark().is_displaced());
        assert_eq!((slot.rule(), slot.pending()), (0x5a5, 0x1_2345));
        assert_eq!(slot.tat(), 0x0123_4567_89ab_cdef);
        let head = Head((slot.0 >> 64) as u64);
        assert!(head.has(slot.mark()) && !head.has(slot.mark().displaced()));
        assert!(!slot.is_reserved() && !head.is_reserved());
    }

    #[test]
    fn a_reserved_slot_is_not_a_bucket() {
        let slot = Slot::reserved(Mark::new(5), 0);
        assert!(slot.is_reserved() && Head((slot.0 >> 64) as u64).is_reserved());
        assert!(!slot.is_given_up() && slot.given_up().is_given_up());
        assert_eq!(slot.given_up().mark(), slot.mark());
        assert!(!slot.given_up().is_empty());
    }
}
