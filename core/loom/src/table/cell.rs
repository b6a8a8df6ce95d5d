//! A slot in loom's memory, which replaces core's module. Loom's atomics have 64 bits, so every
//! field is narrower than in core. A value that does not fit is a bug in the model.

use std::ptr;
use std::sync::atomic::Ordering;

pub(crate) use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::fence;

use super::monitor;
use super::mutation::Mutation;
use super::slot::{Head, Mark, RULES, Slot};

/// A single poll. Loom tries every moment at which the other claim can be cancelled.
pub(super) const CLAIM_SPINS: usize = 1;

const TAT_BITS: u32 = 40;
const PENDING_BITS: u32 = 12;
const RULE_BITS: u32 = 4;
const DISPLACED_BITS: u32 = 1;
const FINGERPRINT_BITS: u32 = 7;

const PENDING_AT: u32 = TAT_BITS;
const RULE_AT: u32 = PENDING_AT + PENDING_BITS;
const DISPLACED_AT: u32 = RULE_AT + RULE_BITS;
const FINGERPRINT_AT: u32 = DISPLACED_AT + DISPLACED_BITS;

/// The rule index of a reserved slot, in core and in the narrow slot.
const RESERVED: u16 = RULES as u16 - 1;
const NARROW_RESERVED: u16 = (1 << RULE_BITS) - 1;

pub(crate) fn full_fence() {
    if !Mutation::NoFence.is_active() {
        fence(Ordering::SeqCst);
    }
}

#[derive(Debug, Default)]
pub(super) struct Cell(AtomicU64);

impl Cell {
    pub(super) fn load(&self) -> Slot {
        widen(self.0.load(Ordering::Acquire))
    }

    /// The halves are loaded separately, as on x86-64, so the value may be torn.
    pub(super) fn load_torn(&self, head: Head) -> Slot {
        let tail = self.load().0 as u64;
        Slot(u128::from(head.0) << 64 | u128::from(tail))
    }

    pub(super) fn replace(&self, old: Slot, new: Slot) -> bool {
        monitor::before_swap();
        let emptied = new.is_given_up() && Mutation::GivenUpIsEmptied.is_active();
        let new = if emptied { Slot::EMPTY } else { new };
        let (from, to) = (narrow(old), narrow(new));
        let replaced = if Mutation::NoCompare.is_active() {
            self.0.store(to, Ordering::Release);
            true
        } else {
            self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        if replaced {
            monitor::after_swap(ptr::from_ref(self).addr(), new);
        }
        replaced
    }

    pub(super) fn head(&self) -> Head {
        Head((self.load().0 >> 64) as u64)
    }

    /// `Line` needs it, but the models do not use it.
    #[allow(dead_code, reason = "as above")]
    pub(super) fn prefetch(&self) {}
}

fn field(value: u64, bits: u32, at: u32) -> u64 {
    assert!(value < 1 << bits, "{value} has more than {bits} bits");
    value << at
}

fn narrow(slot: Slot) -> u64 {
    assert!(slot.rule() != NARROW_RESERVED, "this index marks a reserved slot");
    let rule = if slot.rule() == RESERVED { NARROW_RESERVED } else { slot.rule() };
    field(slot.mark().fingerprint_bits(), FINGERPRINT_BITS, FINGERPRINT_AT)
        | field(slot.mark().is_displaced().into(), DISPLACED_BITS, DISPLACED_AT)
        | field(rule.into(), RULE_BITS, RULE_AT)
        | field(slot.pending(), PENDING_BITS, PENDING_AT)
        | field(slot.tat(), TAT_BITS, 0)
}

fn widen(bits: u64) -> Slot {
    let field = |bits: u64, width: u32, at: u32| bits >> at & ((1 << width) - 1);
    let mark = Mark::new(field(bits, FINGERPRINT_BITS, FINGERPRINT_AT));
    let mark = match field(bits, DISPLACED_BITS, DISPLACED_AT) {
        0 => mark,
        _ => mark.displaced(),
    };
    let rule = field(bits, RULE_BITS, RULE_AT) as u16;
    let rule = if rule == NARROW_RESERVED { RESERVED } else { rule };
    Slot::new(mark, rule, field(bits, PENDING_BITS, PENDING_AT), field(bits, TAT_BITS, 0))
}

#[test]
fn narrow_and_widen_are_inverse() {
    for mark in [Mark::new(0), Mark::new(0x55), Mark::new(0x7f).displaced()] {
        for (rule, pending, tat) in [(1, 0, 0), (14, 4095, (1 << 40) - 1), (10, 0xaaa, 0xaa)] {
            let slot = Slot::new(mark, rule, pending, tat);
            assert_eq!(widen(narrow(slot)), slot);
        }
        let slot = Slot::reserved(mark, 7);
        assert!(slot.is_reserved() && widen(narrow(slot)) == slot);
        assert_eq!(widen(narrow(slot.given_up())), slot.given_up());
    }
    assert_eq!(narrow(Slot::EMPTY), 0);
}
