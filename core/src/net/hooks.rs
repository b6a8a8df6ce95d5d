//! What the driver needs from around it, and what it counts.

use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    pub counters: Arc<Counters>,
}

/// What went wrong, how often.
#[derive(Debug, Default)]
pub struct Counters {
    /// Datagrams that the system did not take.
    pub send_errors: AtomicU64,
    /// Calls that should have received something.
    pub receive_errors: AtomicU64,
    /// Sockets that could not be opened.
    pub bind_errors: AtomicU64,
    /// Names without an address.
    pub resolve_errors: AtomicU64,
    /// Locks that could neither be taken nor were taken by others.
    pub lock_errors: AtomicU64,
    /// Exchanges that could not begin.
    pub start_errors: AtomicU64,
    /// Exchanges that ended in a panic.
    pub panics: AtomicU64,
}

/// Adds to a counter.
pub(crate) fn count(counter: &AtomicU64, more: usize) {
    // Relaxed: a count orders nothing.
    counter.fetch_add(more as u64, Ordering::Relaxed);
}
