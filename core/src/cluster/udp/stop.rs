//! The wish that the thread ends, and the news that it has.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// Both, shared by the thread and its owner.
#[derive(Default)]
pub(crate) struct Stop {
    state: Mutex<State>,
    changed: Condvar,
    /// Wakes the driver, which does not wait for `changed`.
    wake: Notify,
}

#[derive(Default)]
struct State {
    wanted: bool,
    ended: bool,
}

impl Stop {
    /// The thread shall end.
    pub(crate) fn want(&self) {
        self.lock().wanted = true;
        self.changed.notify_all();
        self.wake.notify_one();
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.lock().wanted
    }

    /// The thread has nothing more to do.
    pub(crate) fn ended(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Waits, but not longer than until the thread shall end. Says whether it shall.
    pub(crate) fn wait_wanted(&self, limit: Duration) -> bool {
        self.wait(limit, |state| state.wanted)
    }

    /// Waits until the thread has ended, or for so long. Says whether it has.
    pub(crate) fn wait_ended(&self, limit: Duration) -> bool {
        self.wait(limit, |state| state.ended)
    }

    /// Waits until the thread shall end.
    pub(crate) async fn wanted(&self) {
        // A wish between the two is kept for who waits next.
        while !self.is_wanted() {
            self.wake.notified().await;
        }
    }

    fn wait(&self, limit: Duration, until: impl Fn(&State) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), limit, |state| !until(state));
        until(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Two flags are never half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
