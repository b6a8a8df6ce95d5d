//! The number of requests that all middlewares of this process delay at the moment.
//!
//! A forked child starts at zero, because it does not have the requests of its parent's threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// The fork generation in the upper 32 bits, and the count in the lower 32 bits.
static DELAYED: AtomicU64 = AtomicU64::new(0);

/// Counts one more delayed request. Returns false if `limit` requests are already delayed.
pub(super) fn enter(limit: u32) -> bool {
    let generation = u64::from(generation()) << 32;
    // Relaxed, here and below: the count does not order other memory.
    let entered = DELAYED.try_update(Ordering::Relaxed, Ordering::Relaxed, |delayed| {
        let delayed = if delayed >> 32 == generation >> 32 { delayed } else { generation };
        ((delayed as u32) < limit).then_some(delayed + 1)
    });
    entered.is_ok()
}

/// Counts one delayed request less.
pub(super) fn leave() {
    let generation = u64::from(generation());
    let _ = DELAYED.try_update(Ordering::Relaxed, Ordering::Relaxed, |delayed| {
        (delayed >> 32 == generation && delayed as u32 > 0).then(|| delayed - 1)
    });
}

/// Returns the number of requests that this process delays at the moment.
pub fn delayed() -> u32 {
    let delayed = DELAYED.load(Ordering::Relaxed);
    if delayed >> 32 == u64::from(generation()) { delayed as u32 } else { 0 }
}

/// Starts to count forks, so that `generation` changes in a child.
pub(super) fn watch_forks() {
    #[cfg(all(feature = "shared", unix))]
    let _ = crate::os::fork::watch();
}

fn generation() -> u32 {
    #[cfg(all(feature = "shared", unix))]
    return crate::os::fork::generation();
    #[cfg(not(all(feature = "shared", unix)))]
    0
}
