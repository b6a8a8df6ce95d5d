//! What each thread keeps for itself. One variable, because in a shared library every
//! thread-local variable costs a call to find it.

use std::cell::Cell;

/// A thread's own.
pub(crate) struct Local {
    /// Which counters it uses, if it has been told; see `stats.rs`.
    pub(crate) stripe: Cell<Option<u16>>,
    /// When it last asked for the time; see `os/tsc.rs`.
    pub(crate) anchor: Cell<Anchor>,
}

/// A moment by the system's clock and by the processor's counter.
#[derive(Clone, Copy)]
pub(crate) struct Anchor {
    pub(crate) count: u64,
    pub(crate) ns: u64,
    /// Nanoseconds a count, in 2^-32; zero: not known yet.
    pub(crate) speed: u64,
}

thread_local! {
    pub(crate) static LOCAL: Local = const {
        Local {
            stripe: Cell::new(None),
            anchor: Cell::new(Anchor { count: 0, ns: 0, speed: 0 }),
        }
    };
}
