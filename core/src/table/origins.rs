//! What the table remembers of the origins of reports: which of their reports have been applied.
//!
//! It outlives the process that runs the exchange, so that the next one charges nothing twice. One
//! process writes, the one that holds the exchange, and may be killed at any instruction; any
//! process reads. A window has two copies: one is in force, the other is written, then they change
//! places. Where all that happened is that the next report came, one store does it.
//!
//! A copy has room for 15 missing ranges. Of more, the oldest are left out, and so is what lies more
//! than 2^32 numbers back: that counts as applied and is never charged.

use std::sync::atomic::{Ordering, fence};

use super::Table;
use super::cell::AtomicU64;
use super::peer_status::SharedPeerStatus;
use super::window::{Origin, Ranges, Window};

/// Missing ranges in a copy.
const MAX_RANGES: usize = 15;
/// How far below the base a range may begin.
const MAX_DISTANCE: u64 = u32::MAX as u64 - 1;
/// How often a reader looks again while the writer is faster.
const READ_ATTEMPTS: usize = 100;

/// The place of one origin.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(super) struct PeerSlot {
    /// One when all else is written.
    taken: AtomicU64,
    node: AtomicU64,
    incarnation: AtomicU64,
    /// How often the copies changed places; the last bit says which is in force.
    version: AtomicU64,
    copies: [SharedWindow; 2],
    pub(super) status: SharedPeerStatus,
}

/// A window: what is missing is told by how far below the base it begins and how long it is.
#[repr(C)]
#[derive(Debug, Default)]
struct SharedWindow {
    /// The top when the copy was written.
    base: AtomicU64,
    top: AtomicU64,
    missing: [AtomicU64; MAX_RANGES],
}

impl Table {
    /// The places that are taken.
    pub(crate) fn peer_slots(&self) -> impl Iterator<Item = (usize, Origin)> {
        let peer_slots = self.region.peer_slots().iter().enumerate();
        peer_slots.filter_map(|(place, peer_slot)| Some((place, peer_slot.origin()?)))
    }

    /// The place of an origin, which is given one if it has none. `None`: all are taken.
    pub(crate) fn claim_peer_slot(&self, origin: Origin) -> Option<usize> {
        let peer_slots = self.region.peer_slots();
        peer_slots.iter().position(|peer_slot| peer_slot.origin() == Some(origin)).or_else(|| {
            let free = peer_slots.iter().position(|peer_slot| peer_slot.origin().is_none())?;
            peer_slots[free].take(origin);
            Some(free)
        })
    }

    /// Gives a place back, and forgets what was known.
    pub(crate) fn free_peer_slot(&self, peer_slot: usize) {
        if let Some(peer_slot) = self.region.peer_slots().get(peer_slot) {
            peer_slot.taken.store(0, Ordering::Release);
        }
    }

    /// Which reports of the origin have been applied.
    pub(crate) fn window(&self, peer_slot: usize) -> Window {
        self.region.peer_slots().get(peer_slot).map_or_else(Window::default, PeerSlot::window)
    }

    /// Notes which reports of the origin have been applied.
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

    /// Whoever is killed here leaves a place that is free.
    fn take(&self, origin: Origin) {
        self.node.store(origin.node, Ordering::Relaxed);
        self.incarnation.store(origin.incarnation, Ordering::Relaxed);
        self.set_window(&Window::default());
        self.status.clear();
        // Release: who sees it taken sees all of it.
        self.taken.store(1, Ordering::Release);
    }

    fn window(&self) -> Window {
        let mut window = Window::default();
        for _ in 0..READ_ATTEMPTS {
            // Acquire: pairs with the store in `set_window`.
            let version = self.version.load(Ordering::Acquire);
            window = self.copies[version as usize % 2].read();
            // Who has read a word that was written after a later turn sees that turn below.
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
        // The last turn is seen before what is written now into the copy that it put out of force.
        fence(Ordering::Release);
        copy(next).write(window);
        // Release: who sees the turn sees the copy.
        self.version.store(next, Ordering::Release);
    }
}

impl SharedWindow {
    /// Whether this window has since only seen the next reports.
    fn differs_only_in_top(&self, window: &Window) -> bool {
        let base = self.base.load(Ordering::Relaxed);
        if window.missing().last().is_some_and(|(_, last)| *last > base) {
            return false;
        }
        let words = range_words(window, base);
        self.missing.iter().zip(words).all(|(place, word)| place.load(Ordering::Relaxed) == word)
    }

    fn write(&self, window: &Window) {
        self.base.store(window.top(), Ordering::Relaxed);
        self.top.store(window.top(), Ordering::Relaxed);
        for (target, word) in self.missing.iter().zip(range_words(window, window.top())) {
            target.store(word, Ordering::Relaxed);
        }
    }

    /// Any words make a window: ranges in order, apart, from 1 to the top.
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

/// The newest missing ranges, none of them above the base.
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
    fn a_window_is_read_as_it_was_written() {
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
    fn the_next_reports_are_one_store() {
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

    /// One hole filled and another torn, at once: as words they could look alike.
    #[test]
    fn a_hole_above_the_base_is_not_one_at_the_base() {
        let peer_slot = PeerSlot::default();
        for (top, hole) in [(9, 9), (11, 10), (u64::MAX, 1 << 40)] {
            peer_slot.set_window(&window(top, &[(hole, hole)]));
            assert_eq!(peer_slot.window().top(), top);
            assert!(top == u64::MAX || peer_slot.window().missing() == [(hole, hole)]);
        }
    }

    #[test]
    fn what_does_not_fit_counts_as_applied() {
        let peer_slot = PeerSlot::default();
        let many: Ranges = (1..=20).map(|n| (10 * n, 10 * n + 3)).collect();
        peer_slot.set_window(&window(500, &many));
        assert_eq!(peer_slot.window(), window(500, &many[5..]));
        let top = 1 << 33;
        peer_slot.set_window(&window(top, &[(1, 5), (8, top - 1)]));
        assert_eq!(peer_slot.window(), window(top, &[(top - MAX_DISTANCE, top - 1)]));
    }

    /// A writer that is killed before the copies change places has done nothing.
    #[test]
    fn a_copy_half_written_is_not_in_force() {
        let peer_slot = PeerSlot::default();
        let before = window(9, &[(3, 4)]);
        peer_slot.set_window(&before);
        peer_slot.copies[(version(&peer_slot) as usize + 1) % 2].write(&window(70, &[(50, 60)]));
        assert_eq!(peer_slot.window(), before);
        peer_slot.set_window(&window(12, &[(3, 4), (11, 11)]));
        assert_eq!(peer_slot.window(), window(12, &[(3, 4), (11, 11)]));
    }
}
