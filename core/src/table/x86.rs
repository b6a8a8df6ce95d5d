//! Two instructions of x86-64 that Rust has no safe name for.
#![allow(unsafe_code, reason = "one of the homes of unsafe code; see ARCHITECTURE.md")]

use std::arch::asm;
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use portable_atomic::AtomicU128;

use super::slot::Head;

/// The upper half of an atomic load of the whole.
#[inline]
pub(super) fn head(cell: &AtomicU128) -> Head {
    Head(half::<8>(cell))
}

/// The lower half of an atomic load of the whole.
#[inline]
pub(super) fn tail(cell: &AtomicU128) -> u64 {
    half::<0>(cell)
}

#[inline]
fn half<const OFFSET: u8>(cell: &AtomicU128) -> u64 {
    let half: u64;
    // SAFETY: reads eight aligned bytes of a live reference. For the memory model this is an
    // atomic load of all sixteen bytes of which half is thrown away: loads of aligned eight bytes
    // are atomic here, and all loads have acquire semantics. Rust's own types cannot say so: a
    // mixed-size atomic load would be undefined.
    unsafe {
        asm!(
            "mov {half}, qword ptr [{cell} + {offset}]",
            half = lateout(reg) half,
            cell = in(reg) cell.as_ptr(),
            offset = const OFFSET,
            options(nostack, preserves_flags, readonly),
        );
    }
    half
}

/// Asks for the line to be brought near.
#[inline]
pub(super) fn prefetch(cell: &AtomicU128) {
    // SAFETY: a hint about the address of a live reference; it reads nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(cell.as_ptr().cast::<i8>()) };
}
