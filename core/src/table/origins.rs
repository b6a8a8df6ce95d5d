//! The windows of the peers: which reports of each origin have been applied.
//!
//! They are stored in the table and outlive the process that runs the exchange, so that the next
//! one charges no report twice. Only the exchanging process writes, and it may be killed at any
//! instruction. Any process reads. A window has two copies, of which one is current. The writer
//! changes the other copy and then makes it the current one. If only the next report came, a single
//! store suffices.
//!
//! A copy has room for 15 missing ranges. If there are more, the oldest ones are dropped, and so is
//! everything more than 2^32 numbers back. Dropped reports count as applied and are never charged.

use std::sync::atomic::{Ordering, fence};

use super::Table;
use super::cell::AtomicU64;
use super::peer_status::SharedPeerStatus;
use super::window::{Origin, Ranges, Window};

/// The most missing ranges in a copy.
const MAX_RANGES: usize = 15;
/// The greatest distance of a range from the base.
const MAX_DISTANCE: u64 = u32::MAX as u64 - 1;
/// How often a reader retries if the writer is faster.
const READ_ATTEMPTS: usize = 100;

/// The slot of one peer in the table's header.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(super) struct PeerSlot {
    /// 1 once all other fields are written.
    taken: AtomicU64,
    node: AtomicU64,
    incarnation: AtomicU64,
    /// Number of times the copies were exchanged. The lowest bit selects the current copy.
    version: AtomicU64,
    copies: [SharedWindow; 2],
    pub(super) status: SharedPeerStatus,
}

/// A copy of a window. Each missing range is stored as its distance below the base and its length.
#[repr(C)]
#[derive(Debug, Default)]
struct SharedWindow {
    /// The top when the copy was written.
    base: AtomicU64,
    top: AtomicU64,
    missing: [AtomicU64; MAX_RANGES],
}

impl Table {
    /// All peer slots in use, with their origins.
    pub(crate) fn peer_slots(&self) -> impl Iterator<Item = (usize, Origin)> {
        let peer_slots = self.region.peer_slots().iter().enumerate();
        peer_slots.filter_map(|(index, peer_slot)| Some((index, peer_slot.origin()?)))
    }

    /// Finds or claims the slot of an origin. Returns `None` if all slots are in use.
    pub(crate) fn claim_peer_slot(&self, origin: Origin) -> Option<usize> {
        let peer_slots = self.region.peer_slots();
        peer_slots.iter().position(|peer_slot| peer_slot.origin() == Some(origin)).or_else(|| {
            let free = peer_slots.iter().position(|peer_slot| peer_slot.origin().is_none())?;
            peer_slots[free].take(origin);
            Some(free)
        })
    }

    /// Frees a slot and its contents.
    pub(crate) fn free_peer_slot(&self, peer_slot: usize) {
        if let Some(peer_slot) = self.region.peer_slots().get(peer_slot) {
            peer_slot.taken.store(0, Ordering::Release);
        }
    }

    /// The reports of the origin that have been applied.
    pub(crate) fn window(&self, peer_slot: usize) -> Window {
        self.region.peer_slots().get(peer_slot).map_or_else(Window::default, PeerSlot::window)
    }

    /// Stores which reports of the origin have been applied.
    pub(crate) fn set_window(&self, peer_slot: usize, window: &Window) {
        if let Some(peer_slot) = self.region.peer_slots().get(peer_slot) {
            peer_slot.set_window(window);
        }
    }
}

impl PeerSlot {
    fn origin(&self) -> Option<Origin> {
        // Acquire: pairs with `take`.
        (self.taken.load(Ordering::Acquire) == 1).then(|| Origin {
            node: self.node.load(Ordering::Relaxed),
            incarnation: self.incarnation.load(Ordering::Relaxed),
        })
    }

    /// Claims this slot. If the process is killed here, the slot stays free.
    fn take(&self, origin: Origin) {
        self.node.store(origin.node, Ordering::Relaxed);
        self.incarnation.store(origin.incarnation, Ordering::Relaxed);
        self.set_window(&Window::default());
        self.status.clear();
        // Release: a process that sees the slot in use sees all of its fields.
        self.taken.store(1, Ordering::Release);
    }

    fn window(&self) -> Window {
        let mut window = Window::default();
        for _ in 0..READ_ATTEMPTS {
            // Acquire: pairs with the store in `set_window`.
            let version = self.version.load(Ordering::Acquire);
            window = self.copies[version as usize % 2].read();
            // If a word was written for a later version, the load below sees a later version too.
            fence(Ordering::Acquire);
            if self.version.load(Ordering::Relaxed) == version {
                break;
            }
        }
        window
    }

    fn set_window(&self, window: &Window) {
        let version = self.version.load(Ordering::Relaxed);
        let copy = |version: u64| &self.copies[version as usize % 2];
        if copy(version).differs_only_in_top(window) {
            // Relaxed: nothing else has changed.
            copy(version).top.store(window.top(), Ordering::Relaxed);
            return;
        }
        let next = version.wrapping_add(1);
        // The previous version must be visible before the stores below, which overwrite the copy of
        // the version before it.
        fence(Ordering::Release);
        copy(next).write(window);
        // Release: a reader that sees the version sees the copy.
        self.version.store(next, Ordering::Release);
    }
}

impl SharedWindow {
    /// Returns true if the window continues this copy without a new missing range.
    fn differs_only_in_top(&self, window: &Window) -> bool {
        let base = self.base.load(Ordering::Relaxed);
        if window.missing().last().is_some_and(|(_, last)| *last > base) {
            return false;
        }
        let words = range_words(window, base);
        self.missing.iter().zip(words).all(|(stored, word)| stored.load(Ordering::Relaxed) == word)
    }

    fn write(&self, window: &Window) {
        self.base.store(window.top(), Ordering::Relaxed);
        self.top.store(window.top(), Ordering::Relaxed);
        for (target, word) in self.missing.iter().zip(range_words(window, window.top())) {
            target.store(word, Ordering::Relaxed);
        }
    }

    /// Any words are read as a valid window: ranges in order, not adjacent, from 1 to the top.
    fn read(&self) -> Window {
        let (base, top) = (self.base.load(Ordering::Relaxed), self.top.load(Ordering::Relaxed));
        let mut missing = Ranges::new();
        let mut end = 0;
        for word in &self.missing {
            let word = word.load(Ordering::Relaxed);
            let (distance, length) = (word >> 32, word & u64::from(u32::MAX));
            let first = base.saturating_sub(distance);
            let last = first.saturating_add(length).saturating_sub(1).min(top);
            let is_apart = first > end + 1 || (end == 0 && first == 1);
            if length > 0 && is_apart && first <= last && last < u64::MAX {
                missing.push((first, last));
                end = last;
            }
        }
        Window::new(top, missing)
    }
}

/// The newest missing ranges as words, none of them above the base.
fn range_words(window: &Window, base: u64) -> [u64; MAX_RANGES] {
    let reach = base.saturating_sub(MAX_DISTANCE);
    let missing = window.missing();
    let near = missing.iter().filter(|(_, last)| *last >= reach);
    let left_out = near.clone().count().saturating_sub(MAX_RANGES);
    let mut words = [0; MAX_RANGES];
    for (word, (first, last)) in words.iter_mut().zip(near.skip(left_out)) {
        let first = (*first).max(reach);
        *word = base.saturating_sub(first) << 32 | (last - first + 1);
    }
    words
}

const _: () = assert!(size_of::<PeerSlot>() == 384);

#[cfg(test)]
mod tests {
    use super::*;

    fn window(top: u64, missing: &[(u64, u64)]) -> Window {
        Window::new(top, missing.to_vec())
    }

    fn version(peer_slot: &PeerSlot) -> u64 {
        peer_slot.version.load(Ordering::Relaxed)
    }

    #[test]
    fn a_window_survives_a_write_and_a_read() {
        let peer_slot = PeerSlot::default();
        assert_eq!(peer_slot.window(), Window::default());
        let far = 1 << 40;
        for window in [
            window(1, &[]),
            window(9, &[(1, 9)]),
            window(7, &[(1, 1), (3, 4), (7, 7)]),
            window(far, &[(far - MAX_DISTANCE, far - 5), (far - 3, far)]),
            window(u64::MAX, &[(u64::MAX - 9, u64::MAX - 9)]),
            Window::default(),
        ] {
            peer_slot.set_window(&window);
            assert_eq!(peer_slot.window(), window);
        }
    }

    #[test]
    fn consecutive_reports_do_not_change_the_version() {
        let peer_slot = PeerSlot::default();
        let mut window = Window::default();
        let mut go_on = |reports: &[(u64, u64)], expected: u64| {
            let before = version(&peer_slot);
            for (first, last) in reports {
                window.mark(*first, *last);
                peer_slot.set_window(&window);
                assert_eq!(peer_slot.window(), window);
            }
            assert_eq!(version(&peer_slot) - before, expected, "{reports:?}");
        };
        go_on(&[(1, 1), (2, 2), (3, 5)], 0);
        go_on(&[(8, 8)], 1);
        go_on(&[(9, 9), (10, 10)], 0);
        go_on(&[(12, 12)], 1);
        go_on(&[(13, 13), (6, 7), (14, 14), (11, 11), (15, 15)], 2);
    }

    /// One range was filled and another one appeared at the same time. As words they could look
    /// alike.
    #[test]
    fn a_missing_range_above_the_base_is_kept() {
        let peer_slot = PeerSlot::default();
        for (top, hole) in [(9, 9), (11, 10), (u64::MAX, 1 << 40)] {
            peer_slot.set_window(&window(top, &[(hole, hole)]));
            assert_eq!(peer_slot.window().top(), top);
            assert!(top == u64::MAX || peer_slot.window().missing() == [(hole, hole)]);
        }
    }

    #[test]
    fn ranges_that_do_not_fit_count_as_applied() {
        let peer_slot = PeerSlot::default();
        let many: Ranges = (1..=20).map(|n| (10 * n, 10 * n + 3)).collect();
        peer_slot.set_window(&window(500, &many));
        assert_eq!(peer_slot.window(), window(500, &many[5..]));
        let top = 1 << 33;
        peer_slot.set_window(&window(top, &[(1, 5), (8, top - 1)]));
        assert_eq!(peer_slot.window(), window(top, &[(top - MAX_DISTANCE, top - 1)]));
    }

    /// If the writer is killed before it changes the version, the window is unchanged.
    #[test]
    fn a_half_written_copy_is_not_current() {
        let peer_slot = PeerSlot::default();
        let before = window(9, &[(3, 4)]);
        peer_slot.set_window(&before);
        peer_slot.copies[(version(&peer_slot) as usize + 1) % 2].write(&window(70, &[(50, 60)]));
        assert_eq!(peer_slot.window(), before);
        peer_slot.set_window(&window(12, &[(3, 4), (11, 11)]));
        assert_eq!(peer_slot.window(), window(12, &[(3, 4), (11, 11)]));
    }
}
