//! One slot in memory, changed as a whole by compare-and-swap.
//!
//! Orderings: a slot is its whole state, so the only thing published with it is the rule that its
//! index names. `Release` on the swap that first writes an index pairs with `Acquire` on the load
//! that reads it.
//!
//! `core/loom` puts a module of its own in the place of this one.

pub(crate) use std::sync::atomic::AtomicU64;
use std::sync::atomic::{Ordering, compiler_fence, fence};

pub(crate) use portable_atomic::AtomicU128;

use super::slot::{Head, Slot};

/// How often to look whether another claim of the same tag has ended, before it is overruled:
/// about a microsecond. The process that made it may be dead.
pub(super) const CLAIM_SPINS: usize = 100;

/// Orders the read-modify-write before it against the loads behind it, in one order that all
/// threads agree on. On x86-64 the locked instruction has done so already, and only the compiler
/// has to be told.
#[inline]
pub(crate) fn full_fence() {
    if cfg!(all(target_arch = "x86_64", not(miri))) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// A slot in memory. All zero bytes are an empty one.
#[repr(transparent)]
#[derive(Debug, Default)]
pub(super) struct Cell(AtomicU128);

impl Cell {
    /// Whether other processes may use the memory as well: a lock would be this process's own.
    pub(super) fn is_lock_free() -> bool {
        AtomicU128::is_lock_free()
    }

    pub(super) fn load(&self) -> Slot {
        // Acquire: see the rule that the index names.
        Slot(self.0.load(Ordering::Acquire))
    }

    /// The value as something to compare with: its two halves may be of two moments, and then
    /// `replace` finds that out. Cheaper than `load`.
    #[inline]
    pub(super) fn load_torn(&self, head: Head) -> Slot {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        return Slot(u128::from(head.0) << 64 | u128::from(super::x86::tail(&self.0)));
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        {
            let _ = head;
            self.load()
        }
    }

    /// Replaces the value if it is still this one.
    #[inline(always)]
    pub(super) fn replace(&self, old: Slot, new: Slot) -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(replaced) = super::x86::replace(&self.0, old.0, new.0) {
            return replaced;
        }
        // AcqRel: publishes the rule that the new index names. Relaxed on failure: the caller
        // starts again with a load.
        self.0.compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The upper half, a little cheaper than all of it.
    #[inline]
    pub(super) fn head(&self) -> Head {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        return super::x86::head(&self.0);
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        return Head((self.load().0 >> 64) as u64);
    }

    /// Asks for the line to be brought near.
    #[inline]
    pub(super) fn prefetch(&self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        super::x86::prefetch(&self.0);
    }
}
