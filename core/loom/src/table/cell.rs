//! A slot in loom's memory, in the place of core's module. Loom's atomics have 64 bits, so every
//! field is narrower than in core; what would not fit is a mistake of the model.

use std::sync::atomic::Ordering;

pub(super) use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::fence;

use super::mistake::Mistake;
use super::slot::{Head, Mark, Slot};

const TAT_BITS: u32 = 40;
const PENDING_BITS: u32 = 12;
const RULE_BITS: u32 = 4;
const DISPLACED_BITS: u32 = 1;
const FINGERPRINT_BITS: u32 = 7;

const PENDING_AT: u32 = TAT_BITS;
const RULE_AT: u32 = PENDING_AT + PENDING_BITS;
const DISPLACED_AT: u32 = RULE_AT + RULE_BITS;
const FINGERPRINT_AT: u32 = DISPLACED_AT + DISPLACED_BITS;

pub(super) fn full_fence() {
    if !Mistake::NoFence.is_made() {
        fence(Ordering::SeqCst);
    }
}

#[derive(Debug, Default)]
pub(super) struct Cell(AtomicU64);

impl Cell {
    pub(super) fn load(&self) -> Slot {
        widen(self.0.load(Ordering::Acquire))
    }

    /// As on x86-64: the two halves are of two moments.
    pub(super) fn glance(&self, head: Head) -> Slot {
        let tail = self.load().0 as u64;
        Slot(u128::from(head.0) << 64 | u128::from(tail))
    }

    pub(super) fn replace(&self, old: Slot, new: Slot) -> bool {
        let emptied = new == new.spent() && Mistake::SpentIsEmptied.is_made();
        let (old, new) = (narrow(old), if emptied { 0 } else { narrow(new) });
        if Mistake::NoCompare.is_made() {
            self.0.store(new, Ordering::Release);
            return true;
        }
        self.0.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    pub(super) fn head(&self) -> Head {
        Head((self.load().0 >> 64) as u64)
    }

    /// For `Line`, of which the models use less than core.
    #[allow(dead_code, reason = "as above")]
    pub(super) fn prefetch(&self) {}
}

fn field(value: u64, bits: u32, at: u32) -> u64 {
    assert!(value < 1 << bits, "{value} has more than {bits} bits");
    value << at
}

fn narrow(slot: Slot) -> u64 {
    field(slot.mark().fingerprint_bits(), FINGERPRINT_BITS, FINGERPRINT_AT)
        | field(slot.mark().is_displaced().into(), DISPLACED_BITS, DISPLACED_AT)
        | field(slot.rule().into(), RULE_BITS, RULE_AT)
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
    Slot::new(mark, rule, field(bits, PENDING_BITS, PENDING_AT), field(bits, TAT_BITS, 0))
}

#[test]
fn narrow_and_wide_say_the_same() {
    for mark in [Mark::new(0), Mark::new(0x55), Mark::new(0x7f).displaced()] {
        for (rule, pending, tat) in [(1, 0, 0), (15, 4095, (1 << 40) - 1), (10, 0xaaa, 0xaa)] {
            let slot = Slot::new(mark, rule, pending, tat);
            assert_eq!(widen(narrow(slot)), slot);
        }
    }
    assert_eq!(narrow(Slot::EMPTY), 0);
}
