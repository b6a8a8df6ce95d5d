//! The warnings of one middleware. Each cause is reported once. The adapter logs them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The code of warnings about errors of the throttle.
pub(super) const FAILED: &str = "DTHROTTLE_FAILED";
/// The code of warnings about a table that differs from the configuration.
pub(super) const TABLE: &str = "DTHROTTLE_TABLE";

/// A warning for the application's developer or operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The kind of warning, such as `DTHROTTLE_NO_TAG`.
    pub code: &'static str,
    /// The message, one line.
    pub message: String,
}

#[derive(Debug, Default)]
pub(super) struct Warnings {
    /// Whether `inner.pending` is not empty. Every request reads it.
    pending: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    causes: Vec<&'static str>,
    pending: Vec<Warning>,
}

impl Warnings {
    /// Adds a warning, unless one with this cause was added before.
    pub(super) fn add(&self, code: &'static str, cause: &'static str, message: impl Into<String>) {
        let mut inner = self.lock();
        if !inner.causes.contains(&cause) {
            inner.causes.push(cause);
            inner.pending.push(Warning { code, message: message.into() });
            // Relaxed: the mutex orders access to the warnings.
            self.pending.store(true, Ordering::Relaxed);
        }
    }

    /// Whether there are warnings to take.
    pub(super) fn has_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    /// Returns the warnings since the last call.
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
