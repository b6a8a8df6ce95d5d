//! A socket that is opened again, with backoff, when it cannot be opened or used.

use std::io;

use super::Hooks;
use super::backoff::Backoff;
use super::hooks::count;

/// The socket is closed and opened again after this many consecutive errors.
const MAX_FAILURES: u32 = 16;

/// The direction of an operation. Errors are counted for each direction separately.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    Send,
    Receive,
}

/// A socket that may currently be closed.
pub(crate) struct ManagedSocket<T> {
    socket: Option<T>,
    /// Consecutive errors in each direction.
    failures: [u32; 2],
    backoff: Backoff,
    opened_at: u64,
    /// When to open the socket, if it is closed.
    due: u64,
}

impl<T> ManagedSocket<T> {
    pub(crate) fn new() -> ManagedSocket<T> {
        ManagedSocket {
            socket: None,
            failures: [0; 2],
            backoff: Backoff::new(),
            opened_at: 0,
            due: 0,
        }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.socket.as_ref()
    }

    /// Returns when `open` has to be called next.
    pub(crate) fn due(&self) -> u64 {
        if self.socket.is_some() { u64::MAX } else { self.due }
    }

    /// Opens the socket if that is due. Returns true if it was opened.
    pub(crate) fn open(&mut self, hooks: &Hooks, open: impl FnOnce() -> io::Result<T>) -> bool {
        let now = (hooks.now)();
        if now < self.due() {
            return false;
        }
        match open() {
            Ok(socket) => {
                (self.socket, self.failures, self.opened_at) = (Some(socket), [0; 2], now);
                true
            }
            Err(_) => {
                count(&hooks.counters.bind_errors, 1);
                self.due = later(now, self.backoff.next_delay());
                false
            }
        }
    }

    pub(crate) fn record_success(&mut self, direction: Direction) {
        self.failures[direction as usize] = 0;
    }

    /// Records an error that the socket caused. Closes the socket after too many in a row.
    pub(crate) fn record_failure(&mut self, direction: Direction, now: u64) {
        let failures = &mut self.failures[direction as usize];
        *failures += 1;
        if *failures >= MAX_FAILURES && self.socket.take().is_some() {
            self.due =
                later(now, self.backoff.next_delay_after(now.saturating_sub(self.opened_at)));
        }
    }

    /// Closes the socket, so that it is opened again immediately.
    pub(crate) fn reopen(&mut self) {
        (self.socket, self.due) = (None, 0);
    }
}

fn later(now: u64, wait: std::time::Duration) -> u64 {
    now.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
}
