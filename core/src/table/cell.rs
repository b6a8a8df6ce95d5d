//! One slot in memory, changed as a whole by compare-and-swap.
//!
//! Orderings: the slot holds its whole state, so the only other data published with it is the rule
//! that its index names. `Release` on the swap that first writes an index pairs with `Acquire` on
//! the load that reads it.
//!
//! `core/loom` replaces this module with its own.

pub(crate) use std::sync::atomic::AtomicU64;
use std::sync::atomic::{Ordering, compiler_fence, fence};

pub(crate) use portable_atomic::AtomicU128;

use super::slot::{Head, Slot};

/// How often a claim polls another claim of the same tag before it cancels that claim: about a
/// microsecond. The process that made the other claim may be dead.
pub(super) const CLAIM_SPINS: usize = 100;

/// Orders the read-modify-write before it against the loads after it, in one order that all threads
/// agree on. On x86-64 the locked instruction already does this, so only the compiler needs a
/// fence.
#[inline]
pub(crate) fn full_fence() {
    if cfg!(all(target_arch = "x86_64", not(miri))) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// A slot in memory. Zero bytes are an empty slot.
#[repr(transparent)]
#[derive(Debug, Default)]
pub(super) struct Cell(AtomicU128);

impl Cell {
    /// Returns true if the memory can be shared with other processes. Otherwise the 128-bit
    /// operations use a lock that exists only in this process.
    pub(super) fn is_lock_free() -> bool {
        AtomicU128::is_lock_free()
    }

    pub(super) fn load(&self) -> Slot {
        // Acquire: makes the rule visible that the index names.
        Slot(self.0.load(Ordering::Acquire))
    }

    /// Loads the slot, cheaper than `load`. The value may be torn, because the two halves may be
    /// loaded at different moments. `replace` then fails, so use the value only as its `old`.
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

    /// Replaces the value if it is still `old`.
    #[inline(always)]
    pub(super) fn replace(&self, old: Slot, new: Slot) -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(replaced) = super::x86::replace(&self.0, old.0, new.0) {
            return replaced;
        }
        // AcqRel: publishes the rule that the new index names. Relaxed on failure, because the
        // caller starts again with a load.
        self.0.compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Loads the upper half, which is cheaper than a load of the whole slot.
    #[inline]
    pub(super) fn head(&self) -> Head {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        return super::x86::head(&self.0);
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        return Head((self.load().0 >> 64) as u64);
    }

    /// Prefetches the cache line.
    #[inline]
    pub(super) fn prefetch(&self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        super::x86::prefetch(&self.0);
    }
}
