//! Replaces core's module with atomics of loom. Loom's atomics have 64 bits, so the halves of a
//! 128-bit value are narrower than in core; a value that does not fit is an error of the model.

use std::sync::atomic::Ordering;

pub(super) use crate::table::cell::{AtomicU64, full_fence};
use crate::table::monitor;
use crate::table::mutation::Mutation;

/// Enough records for two services that claim the same one.
pub(super) const WAYS: usize = 2;

/// A value of two halves, each with fewer bits than in core.
#[derive(Debug, Default)]
pub(super) struct AtomicU128(AtomicU64);

const LOW_BITS: u32 = 48;
const HIGH_BITS: u32 = 16;

impl AtomicU128 {
    pub(super) fn load(&self, order: Ordering) -> u128 {
        let order = if Mutation::NoOrder.is_active() { Ordering::Relaxed } else { order };
        widen_halves(self.0.load(order))
    }

    pub(super) fn store(&self, value: u128, order: Ordering) {
        monitor::before_swap();
        self.0.store(narrow_halves(value), order);
    }

    pub(super) fn swap(&self, value: u128, order: Ordering) -> u128 {
        monitor::before_swap();
        widen_halves(self.0.swap(narrow_halves(value), order))
    }

    pub(super) fn compare_exchange(
        &self,
        old: u128,
        new: u128,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u128, u128> {
        if Mutation::NoCompare.is_active() {
            return Ok(self.swap(new, success));
        }
        monitor::before_swap();
        let (from, to) = (narrow_halves(old), narrow_halves(new));
        let done = self.0.compare_exchange(from, to, success, failure);
        done.map(widen_halves).map_err(widen_halves)
    }

    pub(super) fn fetch_update(
        &self,
        success: Ordering,
        failure: Ordering,
        mut next: impl FnMut(u128) -> Option<u128>,
    ) -> Result<u128, u128> {
        monitor::before_swap();
        let next = |bits| next(widen_halves(bits)).map(narrow_halves);
        let done = self.0.fetch_update(success, failure, next);
        done.map(widen_halves).map_err(widen_halves)
    }
}

fn narrow_halves(value: u128) -> u64 {
    field(value as u64, LOW_BITS, 0) | field((value >> 64) as u64, HIGH_BITS, LOW_BITS)
}

fn widen_halves(bits: u64) -> u128 {
    let low = bits & ((1 << LOW_BITS) - 1);
    u128::from(bits >> LOW_BITS) << 64 | u128::from(low)
}

fn field(value: u64, bits: u32, at: u32) -> u64 {
    assert!(value < 1 << bits, "{value} has more than {bits} bits");
    value << at
}
