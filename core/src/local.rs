//! Thread-local values. They are in one variable, because every access to a thread-local variable
//! of a shared library costs a function call.

use std::cell::Cell;

use crate::stats::NO_STRIPE;
use crate::table::fingerprint::LastFingerprint;

/// The values of a thread.
#[derive(Debug)]
pub(crate) struct Local {
    /// Index of the thread's counters; see `stats.rs`.
    pub(crate) stripe: Cell<usize>,
    /// The last reading of the system's clock; see `os/tsc.rs`.
    pub(crate) anchor: Cell<Anchor>,
    /// The last fingerprint; see `table/fingerprint.rs`.
    pub(crate) fingerprint: Cell<LastFingerprint>,
}

/// A moment on the system's clock and on the processor's counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    pub(crate) count: u64,
    pub(crate) ns: u64,
    /// Nanoseconds per count, as a multiple of 2^-32. 0: unknown.
    pub(crate) speed: u64,
}

thread_local! {
    pub(crate) static LOCAL: Local = const {
        Local {
            stripe: Cell::new(NO_STRIPE),
            anchor: Cell::new(Anchor { count: 0, ns: 0, speed: 0 }),
            fingerprint: Cell::new(LastFingerprint::NONE),
        }
    };
}
