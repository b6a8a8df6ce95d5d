//! What each thread keeps for itself. One variable, because in a shared library every
//! thread-local variable costs a call to find it.

use std::cell::Cell;

use crate::stats::NO_STRIPE;

/// A thread's own values.
#[derive(Debug)]
pub(crate) struct Local {
    /// Which counters it uses; see `stats.rs`.
    pub(crate) stripe: Cell<usize>,
    /// When it last asked for the time; see `os/tsc.rs`.
    pub(crate) anchor: Cell<Anchor>,
}

/// A moment by the system's clock and by the processor's counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    pub(crate) count: u64,
    pub(crate) ns: u64,
    /// Nanoseconds a count, in 2^-32; zero: not known yet.
    pub(crate) speed: u64,
}

thread_local! {
    pub(crate) static LOCAL: Local = const {
        Local {
            stripe: Cell::new(NO_STRIPE),
            anchor: Cell::new(Anchor { count: 0, ns: 0, speed: 0 }),
        }
    };
}
