//! What a slot holds: one bucket in 128 bits, so that one compare-and-swap changes all of it.
//!
//! From the top: 38 bits of the fingerprint, 1 bit that says whether the slot lies in the second
//! line of its tag, 12 bits of rule index, 17 bits of pending hits, 60 bits of TAT. All zero is an
//! empty slot: rule indexes begin at 1.

use crate::limit::bucket::Tat;

const TAT_BITS: u32 = 60;
const PENDING_BITS: u32 = 17;
const RULE_BITS: u32 = 12;
const PENDING_AT: u32 = TAT_BITS;
const RULE_AT: u32 = PENDING_AT + PENDING_BITS;
const MARK_AT: u32 = RULE_AT + RULE_BITS;

/// How many bits of the fingerprint a slot keeps.
pub(super) const FINGERPRINT_BITS: u32 = 128 - 1 - MARK_AT;
/// How many rule indexes there are; zero is none, and the last one means something else.
pub(crate) const RULES: usize = 1 << RULE_BITS;
/// How many rules there can be at a time.
pub(crate) const MAX_TABLE_RULES: usize = RULES - 2;
/// The rule index of a slot that is being claimed.
const RESERVED: u16 = RULES as u16 - 1;
/// The most hits that can be pending.
pub(super) const MAX_PENDING: u64 = (1 << PENDING_BITS) - 1;

/// What a tag's slot begins with: the stored bits of the fingerprint, and the displaced bit.
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

    /// `rule` is below `RULES` and not zero, `pending` at most `MAX_PENDING`.
    pub(super) fn new(mark: Mark, rule: u16, pending: u64, tat: Tat) -> Slot {
        Slot(
            u128::from(mark.0) << MARK_AT
                | u128::from(rule) << RULE_AT
                | u128::from(pending) << PENDING_AT
                | u128::from(tat),
        )
    }

    /// As its head says: no slot in use has a head of zero.
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

    /// The same tag under this rule with this TAT and these hits pending.
    pub(super) fn with(self, rule: u16, pending: u64, tat: Tat) -> Slot {
        Slot::new(self.mark(), rule, pending, tat)
    }

    /// A slot that is being claimed for a tag. The token tells claims apart.
    pub(super) fn reserved(mark: Mark, token: u64) -> Slot {
        Slot::new(mark, RESERVED, 0, (token << 1 | 1) & ((1 << TAT_BITS) - 1))
    }

    /// Whether the slot is being claimed, or was and is not any more: no bucket of its tag.
    pub(super) fn is_reserved(self) -> bool {
        self.rule() == RESERVED
    }

    /// Whether the claim of the slot has been given up.
    pub(super) fn is_given_up(self) -> bool {
        self.is_reserved() && self.tat() == 0
    }

    /// The slot when a claim is given up. It stays taken, so that a line never seems emptier than
    /// it was.
    pub(super) fn given_up(self) -> Slot {
        self.with(RESERVED, 0, 0)
    }
}

/// The upper half of a slot, enough to see whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head(pub(super) u64);

impl Head {
    /// Also true of an empty slot if the mark is zero.
    pub(super) fn has(self, mark: Mark) -> bool {
        self.0 >> (MARK_AT - 64) == mark.0
    }

    /// Whether this is a bucket with this mark under this rule.
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
    fn every_field_has_its_own_bits() {
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
    fn a_reserved_slot_is_no_bucket() {
        let slot = Slot::reserved(Mark::new(5), 0);
        assert!(slot.is_reserved() && Head((slot.0 >> 64) as u64).is_reserved());
        assert!(!slot.is_given_up() && slot.given_up().is_given_up());
        assert_eq!(slot.given_up().mark(), slot.mark());
        assert!(!slot.given_up().is_empty());
    }
}
