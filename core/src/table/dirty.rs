//! Dirty lines: one bit for each line that has pending hits.
//!
//! A process that counts a hit swaps the slot first and sets the bit afterwards. The exchanging
//! process clears the bits first and reads the slots afterwards. So no hit is missed. If a process
//! is killed between the two steps, the next hit in the same line sets the bit.

use std::sync::atomic::Ordering;

use super::cell::{AtomicU64, Cell, full_fence};
use super::slot::Slot;

/// Marks a line as dirty. Call it after the slot was changed.
#[inline]
pub(super) fn mark(word: &AtomicU64, bit: u64) {
    // Orders the swap of the slot before the load below. `take_bits` has the matching fence: either
    // we see the bit cleared, or the exchanging process sees the slot.
    full_fence();
    if word.load(Ordering::Relaxed) & bit == 0 {
        // Relaxed: `full_fence` orders it, and the slots hold all data.
        word.fetch_or(bit, Ordering::Relaxed);
    }
}

/// Takes the dirty bits of a page, and clears them.
pub(super) fn take_bits(word: &AtomicU64) -> u64 {
    if word.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    let bits = word.swap(0, Ordering::Relaxed);
    // Pairs with the fence in `mark`.
    full_fence();
    bits
}

/// The result of `drain_slot`.
pub(super) enum SlotDrain {
    /// The slot has no pending hits.
    Nothing,
    /// The hits are not due yet. The line must be marked again.
    NotDue,
    /// The previous value of the slot. Its hits are no longer pending.
    Taken(Slot),
}

/// Takes the pending hits out of a slot if they are due.
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
