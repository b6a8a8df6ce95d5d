//! Observes every change at the moment it is made, which the threads of a model cannot do, and
//! asserts that no tag ever has two buckets. It also kills threads.

use std::cell::RefCell;
use std::panic;

use loom::thread::{self, ThreadId};

use super::slot::Slot;

/// The panic payload of a killed thread.
pub(crate) struct Killed;

#[derive(Default)]
struct Monitor {
    /// All slots that were ever changed, by address.
    slots: Vec<(usize, Slot)>,
    /// A thread to kill, and the number of swaps that it may still try.
    to_kill: Option<(ThreadId, usize)>,
}

thread_local! {
    // All threads of a model run in one thread of the system and switch only at loom's operations.
    // So code that runs after a swap sees no other thread's changes.
    static MONITOR: RefCell<Monitor> = RefCell::default();
}

/// Resets the monitor for a new model.
pub(crate) fn reset() {
    MONITOR.take();
}

/// Kills this thread when it tries one more swap than `swaps`.
pub(crate) fn kill_after(swaps: usize) {
    MONITOR.with_borrow_mut(|monitor| monitor.to_kill = Some((thread::current().id(), swaps)));
}

/// Called before each swap.
pub(crate) fn before_swap() {
    let dead = MONITOR.with_borrow_mut(|monitor| match &mut monitor.to_kill {
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

/// Called after each successful swap.
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
