//! The wish that the thread ends, and the news that it has.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// Both, shared by the thread and its owner.
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
    /// The thread shall end.
    pub(crate) fn request(&self) {
        self.lock().requested = true;
        self.changed.notify_all();
        self.wake.notify_one();
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.lock().requested
    }

    /// The thread has nothing more to do.
    pub(crate) fn set_ended(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Waits, but not longer than until the thread shall end. Says whether it shall.
    pub(crate) fn wait_requested(&self, limit: Duration) -> bool {
        self.wait(limit, |state| state.requested)
    }

    /// Waits until the thread has ended, or for so long. Says whether it has.
    pub(crate) fn wait_ended(&self, limit: Duration) -> bool {
        self.wait(limit, |state| state.ended)
    }

    /// Waits until the thread shall end.
    pub(crate) async fn requested(&self) {
        // A wish between the two is kept for who waits next.
        while !self.is_requested() {
            self.wake.notified().await;
        }
    }

    fn wait(&self, limit: Duration, until: impl Fn(&StopState) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), limit, |state| !until(state));
        until(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn lock(&self) -> MutexGuard<'_, StopState> {
        // Two flags are never half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
