//! The atomics under the records. `core/loom` replaces this module.

pub(super) use crate::table::cell::{AtomicU64, AtomicU128, full_fence};

/// Records in which a service may be.
pub(super) const WAYS: usize = 8;
