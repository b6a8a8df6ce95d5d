//! A place for a socket: opened again, later and later, whenever it cannot be opened or used.

use std::io;

use super::Hooks;
use super::backoff::Backoff;
use super::hooks::count;

/// So many errors in a row, and the socket is no good.
const MAX_FAILURES: u32 = 16;

/// What a socket was used for. What it can do of one says nothing about the other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    Send,
    Receive,
}

/// A place for a socket.
pub(crate) struct Port<T> {
    held: Option<T>,
    /// In a row, for each use.
    failures: [u32; 2],
    backoff: Backoff,
    opened: u64,
    /// When to open it.
    due: u64,
}

impl<T> Port<T> {
    pub(crate) fn new() -> Port<T> {
        Port { held: None, failures: [0; 2], backoff: Backoff::new(), opened: 0, due: 0 }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.held.as_ref()
    }

    /// When there is something to do here.
    pub(crate) fn due(&self) -> u64 {
        if self.held.is_some() { u64::MAX } else { self.due }
    }

    /// Opens it if that is due. Says whether it is newly open.
    pub(crate) fn open(&mut self, hooks: &Hooks, open: impl FnOnce() -> io::Result<T>) -> bool {
        let now = (hooks.now)();
        if now < self.due() {
            return false;
        }
        match open() {
            Ok(held) => {
                (self.held, self.failures, self.opened) = (Some(held), [0; 2], now);
                true
            }
            Err(_) => {
                count(&hooks.counters.bind_errors, 1);
                self.due = later(now, self.backoff.wait());
                false
            }
        }
    }

    pub(crate) fn worked(&mut self, what: Use) {
        self.failures[what as usize] = 0;
    }

    /// An error that the socket is the cause of.
    pub(crate) fn failed(&mut self, what: Use, now: u64) {
        let failures = &mut self.failures[what as usize];
        *failures += 1;
        if *failures >= MAX_FAILURES && self.held.take().is_some() {
            self.due = later(now, self.backoff.wait_after(now.saturating_sub(self.opened)));
        }
    }

    /// Closes it, to be opened at once.
    pub(crate) fn reopen(&mut self) {
        (self.held, self.due) = (None, 0);
    }
}

fn later(now: u64, wait: std::time::Duration) -> u64 {
    now.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
}
