//! x86-64 instructions that Rust offers no safe function for.
#![allow(unsafe_code, reason = "unsafe code is allowed here; see ARCHITECTURE.md")]

use std::arch::asm;
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use portable_atomic::AtomicU128;

use super::slot::Head;

/// The upper half of an atomic load of all 16 bytes.
#[inline]
pub(super) fn head(cell: &AtomicU128) -> Head {
    Head(half::<8>(cell))
}

/// The lower half of an atomic load of all 16 bytes.
#[inline]
pub(super) fn tail(cell: &AtomicU128) -> u64 {
    half::<0>(cell)
}

#[inline]
fn half<const OFFSET: u8>(cell: &AtomicU128) -> u64 {
    let half: u64;
    // SAFETY: reads eight aligned bytes behind a live reference. Rust's memory model has no atomic
    // loads of mixed sizes, so this counts as an atomic load of all sixteen bytes, of which half is
    // discarded. On x86-64, aligned loads of eight bytes are atomic and have acquire semantics.
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

/// Replaces a value if it is still the old one. `AtomicU128::compare_exchange` does the same, but
/// through a function pointer. Returns `None` if the processor has no such instruction.
#[inline]
pub(super) fn replace(cell: &AtomicU128, old: u128, new: u128) -> Option<bool> {
    if !AtomicU128::is_lock_free() {
        return None;
    }
    let replaced: u8;
    // SAFETY: the type is lock-free, so the processor has the instruction. It reads and writes
    // sixteen aligned bytes behind a live reference in one atomic step, as the type itself does.
    // rbx, which the compiler reserves, has its old value again at the end.
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

/// Prefetches the cache line.
#[inline]
pub(super) fn prefetch(cell: &AtomicU128) {
    // SAFETY: a hint about the address of a live reference. It reads no memory.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(cell.as_ptr().cast::<i8>()) };
}
