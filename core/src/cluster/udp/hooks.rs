//! What the driver needs from around it, and what it counts.

use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cluster::Counter;
use crate::cluster::access::Exchange;
use crate::os::fork;

/// Is told of a descriptor.
pub type FdHook = Arc<dyn Fn(RawFd) + Send + Sync>;

/// What the driver needs from around it.
#[derive(Clone)]
pub struct Hooks {
    /// The table's time, in nanoseconds.
    pub now: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// How often this process was forked from its ancestors: a child has another number than its
    /// parent.
    pub generation: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// A socket was opened: a forked child must close it.
    pub register_fd: FdHook,
    /// A socket will be closed at once.
    pub unregister_fd: FdHook,
    /// The unicast socket is open at this address.
    pub bound: Arc<dyn Fn(SocketAddr) + Send + Sync>,
    /// What went wrong.
    pub counters: Arc<ErrorCounters>,
}

impl Hooks {
    /// Those of a driver at work for a table.
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

/// What went wrong, how often.
#[derive(Default)]
pub struct ErrorCounters {
    /// Datagrams that the system did not take.
    pub send_errors: ErrorCounter,
    /// Calls that should have received something.
    pub receive_errors: ErrorCounter,
    /// Sockets that could not be opened.
    pub bind_errors: ErrorCounter,
    /// Names without an address.
    pub resolve_errors: ErrorCounter,
    /// Locks that could neither be taken nor were taken by others.
    pub lock_errors: ErrorCounter,
    /// Exchanges that could not begin.
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

/// A count, here and for all processes of the table to see.
#[derive(Default)]
pub struct ErrorCounter {
    count: AtomicU64,
    shared: Option<(Exchange, Counter)>,
}

impl ErrorCounter {
    /// What was counted here.
    pub fn get(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// Adds to a counter.
pub(crate) fn count(tally: &ErrorCounter, more: usize) {
    // Relaxed: a count orders nothing.
    tally.count.fetch_add(more as u64, Ordering::Relaxed);
    if let Some((exchange, counter)) = &tally.shared {
        exchange.add_to_counter(counter.index(), more as u64);
    }
}
