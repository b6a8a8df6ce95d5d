//! What each thread keeps for itself. One variable, because in a shared library every
//! thread-local variable costs a call to find it.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::stats;
use crate::table::fingerprint::Last;

/// A thread's own.
#[derive(Debug)]
pub struct Local {
    /// Which counters it uses; see `stats.rs`.
    pub(crate) stripe: Cell<usize>,
    /// When it last asked for the time; see `os/tsc.rs`.
    pub(crate) anchor: Cell<Anchor>,
    /// The last fingerprint.
    pub(crate) last: Last,
    /// It stays in its thread: nobody else may use those counters.
    here: PhantomData<*const ()>,
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
    pub(crate) static LOCAL: Local = const { Local::new() };
}

impl Local {
    const fn new() -> Local {
        Local {
            stripe: Cell::new(stats::UNTOLD),
            anchor: Cell::new(Anchor { count: 0, ns: 0, speed: 0 }),
            last: Last::none(),
            here: PhantomData,
        }
    }

    /// What this thread keeps for itself, once more: for a binding that has it at hand, and need not
    /// look for it at every call.
    pub fn here() -> Local {
        let local = Local::new();
        local.stripe.set(LOCAL.with(stats::stripe));
        local
    }
}
