//! Sees every change at the moment it is made, as no thread of a model can, and asserts that no
//! tag ever has two buckets. Also where a thread dies, if it is to die.

use std::cell::RefCell;
use std::panic;

use loom::thread::{self, ThreadId};

use super::slot::Slot;

/// What a dead thread leaves as its last word.
pub(crate) struct Killed;

#[derive(Default)]
struct Monitor {
    /// The slots that were ever changed, by address.
    slots: Vec<(usize, Slot)>,
    /// A thread, and how many swaps it has yet to try.
    dying: Option<(ThreadId, usize)>,
}

thread_local! {
    // All threads of a model run in one thread of the system, and change places only at the next
    // operation: what is noted behind a swap belongs to it.
    static MONITOR: RefCell<Monitor> = RefCell::default();
}

/// Forgets all, for a new model.
pub(crate) fn reset() {
    MONITOR.take();
}

/// The thread will die instead of trying one more swap after so many.
pub(crate) fn kill_after(swaps: usize) {
    MONITOR.with_borrow_mut(|monitor| monitor.dying = Some((thread::current().id(), swaps)));
}

/// Before each swap.
pub(crate) fn before_swap() {
    let dead = MONITOR.with_borrow_mut(|monitor| match &mut monitor.dying {
        Some((thread, 0)) => *thread == thread::current().id(),
        Some((thread, left)) if *thread == thread::current().id() => {
            *left -= 1;
            false
        }
        _ => false,
    });
    if dead {
        panic::resume_unwind(Box::new(Killed));
    }
}

/// After each swap that changed something.
pub(super) fn after_swap(address: usize, new: Slot) {
    MONITOR.with_borrow_mut(|monitor| {
        match monitor.slots.iter_mut().find(|(other, _)| *other == address) {
            Some((_, slot)) => *slot = new,
            None => monitor.slots.push((address, new)),
        }
        let tag = new.mark().fingerprint_bits();
        let slots = monitor.slots.iter().map(|(_, slot)| slot);
        let own = slots.filter(|slot| slot.mark().fingerprint_bits() == tag);
        let buckets = own.filter(|slot| !slot.is_empty() && !slot.is_reserved()).count();
        assert!(buckets < 2, "two buckets of {tag} in {:?}", monitor.slots);
    });
}
