//! Which lines have something to report: one bit for each.
//!
//! Whoever counts a hit swaps the slot first and sets the bit after it; the exchanger clears the
//! bits first and visits the slots after it. So no hit stays unseen: a process killed between the
//! two leaves a slot that the next hit of its line brings back.

use std::sync::atomic::Ordering;

use super::cell::{AtomicU64, Cell, full_fence};
use super::slot::Slot;

/// Notes that a line has something to report, after its slot was changed.
#[inline]
pub(super) fn mark(word: &AtomicU64, bit: u64) {
    // The swap of the slot before this and the load below, against `take_bits` and the loads
    // behind it: either we see the bit cleared, or the exchanger sees the slot.
    full_fence();
    if word.load(Ordering::Relaxed) & bit == 0 {
        // Relaxed: `full_fence` orders it, and the slots carry all that matters.
        word.fetch_or(bit, Ordering::Relaxed);
    }
}

/// The lines to visit, which are no longer marked.
pub(super) fn take_bits(word: &AtomicU64) -> u64 {
    if word.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    let bits = word.swap(0, Ordering::Relaxed);
    // See `mark`.
    full_fence();
    bits
}

/// What a visit found in a slot.
pub(super) enum SlotDrain {
    /// Nothing to report.
    Nothing,
    /// Not due yet: the line must be marked again.
    NotDue,
    /// The slot as it was; its hits are no longer pending.
    Taken(Slot),
}

/// Takes the pending hits out of a slot, if they are due.
pub(super) fn drain_slot(cell: &Cell, mut due: impl FnMut(Slot) -> bool) -> SlotDrain {
    loop {
        let slot = cell.load();
        if slot.pending() == 0 {
            return SlotDrain::Nothing;
        }
        if !due(slot) {
            return SlotDrain::NotDue;
        }
        if cell.replace(slot, slot.with(slot.rule(), 0, slot.tat())) {
            return SlotDrain::Taken(slot);
        }
    }
}
