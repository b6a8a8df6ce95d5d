//! Warnings of one middleware: each cause once. The adapter logs them in its language's way.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The code of an error of the throttle.
pub(super) const FAILED: &str = "DTHROTTLE_FAILED";
/// The code of a table that is not what was asked for.
pub(super) const TABLE: &str = "DTHROTTLE_TABLE";

/// Something that the application's author should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What kind of warning it is, such as `DTHROTTLE_NO_TAG`.
    pub code: &'static str,
    /// One line for the log.
    pub message: String,
}

#[derive(Debug, Default)]
pub(super) struct Warnings {
    /// Whether there is something to take. Read at every request, so it must be cheap.
    pending: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    causes: Vec<&'static str>,
    pending: Vec<Warning>,
}

impl Warnings {
    /// Adds a warning, unless there was one of this cause.
    pub(super) fn add(&self, code: &'static str, cause: &'static str, message: impl Into<String>) {
        let mut inner = self.lock();
        if !inner.causes.contains(&cause) {
            inner.causes.push(cause);
            inner.pending.push(Warning { code, message: message.into() });
            // Relaxed: the mutex orders what it announces.
            self.pending.store(true, Ordering::Relaxed);
        }
    }

    /// Whether there is something to take.
    pub(super) fn has_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    /// The warnings since the last call.
    pub(super) fn take(&self) -> Vec<Warning> {
        if !self.has_pending() {
            return Vec::new();
        }
        let mut inner = self.lock();
        self.pending.store(false, Ordering::Relaxed);
        std::mem::take(&mut inner.pending)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
