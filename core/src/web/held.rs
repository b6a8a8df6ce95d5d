//! How many requests this process holds, in all its middleware together.
//!
//! A forked child starts at zero: it does not hold the requests of its parent's threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of forks before this process in the upper half, the count in the lower.
static HELD: AtomicU64 = AtomicU64::new(0);

/// Takes a place for one more request, if fewer than `most` are held.
pub(super) fn enter(most: u32) -> bool {
    let generation = u64::from(generation()) << 32;
    // Relaxed, here and below: the count orders nothing else.
    let entered = HELD.try_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
        let held = if held >> 32 == generation >> 32 { held } else { generation };
        ((held as u32) < most).then_some(held + 1)
    });
    entered.is_ok()
}

/// Frees the place of a request.
pub(super) fn leave() {
    let generation = u64::from(generation());
    let _ = HELD.try_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
        (held >> 32 == generation && held as u32 > 0).then(|| held - 1)
    });
}

/// How many requests are held now.
pub fn held() -> u32 {
    let held = HELD.load(Ordering::Relaxed);
    if held >> 32 == u64::from(generation()) { held as u32 } else { 0 }
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
