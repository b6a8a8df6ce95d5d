//! A place for a socket: opened again, later and later, whenever it cannot be opened or used.

use std::io;

use super::Hooks;
use super::backoff::Backoff;
use super::hooks::count;

/// So many errors in a row, and the socket is no good.
const MAX_FAILURES: u32 = 16;

/// What a socket was used for. What it can do of one says nothing about the other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    Send,
    Receive,
}

/// A place for a socket.
pub(crate) struct ManagedSocket<T> {
    socket: Option<T>,
    /// In a row, for each use.
    failures: [u32; 2],
    backoff: Backoff,
    opened_at: u64,
    /// When to open it.
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

    /// When there is something to do here.
    pub(crate) fn due(&self) -> u64 {
        if self.socket.is_some() { u64::MAX } else { self.due }
    }

    /// Opens it if that is due. Says whether it is newly open.
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

    /// An error that the socket is the cause of.
    pub(crate) fn record_failure(&mut self, direction: Direction, now: u64) {
        let failures = &mut self.failures[direction as usize];
        *failures += 1;
        if *failures >= MAX_FAILURES && self.socket.take().is_some() {
            self.due =
                later(now, self.backoff.next_delay_after(now.saturating_sub(self.opened_at)));
        }
    }

    /// Closes it, to be opened at once.
    pub(crate) fn reopen(&mut self) {
        (self.socket, self.due) = (None, 0);
    }
}

fn later(now: u64, wait: std::time::Duration) -> u64 {
    now.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
}
