//! Instructions of x86-64 that Rust has no safe name for.
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

/// Replaces a value if it is still the old one, as `compare_exchange` does, which is called by way of
/// a pointer here. Nothing: this processor has no such instruction.
#[inline]
pub(super) fn replace(cell: &AtomicU128, old: u128, new: u128) -> Option<bool> {
    if !AtomicU128::is_lock_free() {
        return None;
    }
    let replaced: u8;
    // SAFETY: the processor has the instruction, else the type would need a lock. It reads and
    // writes sixteen aligned bytes of a live reference in one atomic step, as the type itself does.
    // rbx, which the compiler keeps for itself, is as before in the end.
    unsafe {
        asm!(
            "xchg rbx, r8",
            "lock cmpxchg16b xmmword ptr [rdi]",
            "sete r9b",
            "mov rbx, r8",
            in("rdi") cell.as_ptr(),
            inout("r8") new as u64 => _,
            in("rcx") (new >> 64) as u64,
            inout("rax") old as u64 => _,
            inout("rdx") (old >> 64) as u64 => _,
            lateout("r9b") replaced,
            options(nostack),
        );
    }
    Some(replaced != 0)
}

/// Asks for the line to be brought near.
#[inline]
pub(super) fn prefetch(cell: &AtomicU128) {
    // SAFETY: a hint about the address of a live reference; it reads nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(cell.as_ptr().cast::<i8>()) };
}
