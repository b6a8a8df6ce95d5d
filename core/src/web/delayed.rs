//! How many requests this process delays, in all its middleware together.
//!
//! A forked child starts at zero: it does not delay the requests of its parent's threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of forks before this process in the upper half, the count in the lower.
static DELAYED: AtomicU64 = AtomicU64::new(0);

/// Takes a place for one more request, if fewer than `most` are delayed.
pub(super) fn enter(most: u32) -> bool {
    let generation = u64::from(generation()) << 32;
    // Relaxed, here and below: the count orders nothing else.
    let entered = DELAYED.try_update(Ordering::Relaxed, Ordering::Relaxed, |delayed| {
        let delayed = if delayed >> 32 == generation >> 32 { delayed } else { generation };
        ((delayed as u32) < most).then_some(delayed + 1)
    });
    entered.is_ok()
}

/// Frees the place of a request.
pub(super) fn leave() {
    let generation = u64::from(generation());
    let _ = DELAYED.try_update(Ordering::Relaxed, Ordering::Relaxed, |delayed| {
        (delayed >> 32 == generation && delayed as u32 > 0).then(|| delayed - 1)
    });
}

/// How many requests are delayed now.
pub fn delayed() -> u32 {
    let delayed = DELAYED.load(Ordering::Relaxed);
    if delayed >> 32 == u64::from(generation()) { delayed as u32 } else { 0 }
}

/// Notices forks from now on.
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
