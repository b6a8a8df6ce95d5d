//! Signals between the background thread and its owner: that it should end, and that it has ended.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// The signals, shared by the thread and its owner.
#[derive(Default)]
pub(crate) struct StopSignal {
    state: Mutex<StopState>,
    changed: Condvar,
    /// Wakes the driver, which does not wait for `changed`.
    wake: Notify,
}

#[derive(Default)]
struct StopState {
    requested: bool,
    ended: bool,
}

impl StopSignal {
    /// Asks the thread to end.
    pub(crate) fn request(&self) {
        self.lock().requested = true;
        self.changed.notify_all();
        self.wake.notify_one();
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.lock().requested
    }

    /// Marks the thread as ended.
    pub(crate) fn set_ended(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Waits for `limit`, or until the thread is asked to end. Returns true if it is.
    pub(crate) fn wait_requested(&self, limit: Duration) -> bool {
        self.wait(limit, |state| state.requested)
    }

    /// Waits until the thread has ended, at most for `limit`. Returns true if it has.
    pub(crate) fn wait_ended(&self, limit: Duration) -> bool {
        self.wait(limit, |state| state.ended)
    }

    /// Waits until the thread is asked to end.
    pub(crate) async fn requested(&self) {
        // A request between the two calls is stored in `wake`, so that it is not missed.
        while !self.is_requested() {
            self.wake.notified().await;
        }
    }

    fn wait(&self, limit: Duration, until: impl Fn(&StopState) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), limit, |state| !until(state));
        until(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn lock(&self) -> MutexGuard<'_, StopState> {
        // The two flags are consistent even if a thread panicked while it held the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
