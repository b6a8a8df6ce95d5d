//! What the driver needs from its host, and its error counters.

use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cluster::Counter;
use crate::cluster::access::Exchange;
use crate::os::fork;

/// A function that is called with a file descriptor.
pub type FdHook = Arc<dyn Fn(RawFd) + Send + Sync>;

/// The functions and counters that the driver needs.
#[derive(Clone)]
pub struct Hooks {
    /// Returns the table's time in nanoseconds.
    pub now: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Returns a number that differs between a forked child and its parent.
    pub generation: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Called after a socket was opened. A forked child must close it.
    pub register_fd: FdHook,
    /// Called immediately before a socket is closed.
    pub unregister_fd: FdHook,
    /// Called when the unicast socket has been bound to this address.
    pub bound: Arc<dyn Fn(SocketAddr) + Send + Sync>,
    /// The error counters.
    pub counters: Arc<ErrorCounters>,
}

impl Hooks {
    /// Hooks of a driver that runs the exchange of a table.
    pub(crate) fn of_table(exchange: Exchange) -> Hooks {
        let counters = Arc::new(ErrorCounters::of_table(&exchange));
        Hooks {
            now: Arc::new(move || exchange.now()),
            generation: Arc::new(|| fork::generation().into()),
            register_fd: Arc::new(fork::register),
            unregister_fd: Arc::new(fork::unregister),
            bound: Arc::new(|_| {}),
            counters,
        }
    }
}

/// Counters of errors.
#[derive(Default)]
pub struct ErrorCounters {
    /// Datagrams that could not be sent.
    pub send_errors: ErrorCounter,
    /// Calls that failed to receive.
    pub receive_errors: ErrorCounter,
    /// Sockets that could not be opened.
    pub bind_errors: ErrorCounter,
    /// Names that could not be resolved.
    pub resolve_errors: ErrorCounter,
    /// Attempts to take the lock that failed for another reason than that it was held.
    pub lock_errors: ErrorCounter,
    /// Exchanges that could not start.
    pub start_errors: ErrorCounter,
    /// Exchanges that ended in a panic.
    pub panics: ErrorCounter,
}

impl ErrorCounters {
    fn of_table(exchange: &Exchange) -> ErrorCounters {
        let tally = |counter| ErrorCounter {
            shared: Some((exchange.clone(), counter)),
            ..ErrorCounter::default()
        };
        ErrorCounters {
            send_errors: tally(Counter::SendErrors),
            receive_errors: tally(Counter::ReceiveErrors),
            bind_errors: tally(Counter::BindErrors),
            resolve_errors: tally(Counter::ResolveErrors),
            lock_errors: tally(Counter::LockErrors),
            start_errors: tally(Counter::StartErrors),
            panics: tally(Counter::Restarts),
        }
    }
}

/// A counter of this process. It also adds to the counter in the table, if there is one.
#[derive(Default)]
pub struct ErrorCounter {
    count: AtomicU64,
    shared: Option<(Exchange, Counter)>,
}

impl ErrorCounter {
    /// Returns the count of this process.
    pub fn get(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

pub(crate) fn count(tally: &ErrorCounter, more: usize) {
    // Relaxed: a count orders nothing.
    tally.count.fetch_add(more as u64, Ordering::Relaxed);
    if let Some((exchange, counter)) = &tally.shared {
        exchange.add_to_counter(counter.index(), more as u64);
    }
}
