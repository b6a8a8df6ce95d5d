//! The thread that runs the exchange of a table. It waits until no other process runs it, and then
//! runs it until it is stopped.
//!
//! There is one thread per process and table. A panic in it never ends the process. A forked child
//! does not have its parent's threads, and starts its own.

use std::io;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::backoff::Backoff;
use super::driver::{self, DriverConfig};
use super::hooks::{Hooks, count};
use super::stop::StopSignal;
use super::udp_engine::UdpEngine;
use crate::os::signals;

/// How often the thread tries to take the lock.
const LOCK_RETRY: Duration = Duration::from_millis(250);
/// How long `stop` waits for the thread to end.
const STOP_TIMEOUT: Duration = Duration::from_millis(300);

/// A handle to the thread. Dropping it stops the thread.
pub struct Background {
    thread: Option<JoinHandle<()>>,
    stop: Arc<StopSignal>,
    hooks: Hooks,
    generation: u64,
}

impl Background {
    /// Starts the thread. It calls `try_lock` until that returns a guard, and holds the guard while
    /// it runs an engine made by `make`. After a failure, both are called again.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start<G, E: UdpEngine>(
        hooks: Hooks,
        try_lock: impl FnMut() -> io::Result<Option<G>> + Send + 'static,
        make: impl FnMut() -> io::Result<(E, DriverConfig)> + Send + 'static,
    ) -> io::Result<Background> {
        let stop = Arc::new(StopSignal::default());
        let generation = (hooks.generation)();
        let worker = Worker { hooks: hooks.clone(), stop: stop.clone(), try_lock, make };
        let builder = thread::Builder::new().name("dthrottle".into());
        let thread = signals::blocked(|| {
            builder.spawn(move || {
                let stop = worker.stop.clone();
                worker.run();
                stop.set_ended();
            })
        })?;
        Ok(Background { thread: Some(thread), stop, hooks, generation })
    }

    /// Returns true if the thread belongs to this process. After a fork it does not, and the child
    /// must start another one.
    pub fn is_here(&self) -> bool {
        self.generation == (self.hooks.generation)()
    }

    /// Like `stop`, but does not wait. `stop` may still be called.
    pub(crate) fn request_stop(&self) {
        if self.is_here() {
            self.stop.request();
        }
    }

    /// Tells the peers that this node leaves, and ends the thread. Waits for at most `STOP_TIMEOUT`
    /// until it has ended.
    pub fn stop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if !self.is_here() {
            // Joining a parent's thread would block forever, and its locks may stay locked forever.
            mem::forget(thread);
            return;
        }
        self.stop.request();
        if self.stop.wait_ended(STOP_TIMEOUT) {
            // The thread has finished. A panic in it has already been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The main loop of the thread.
struct Worker<L, M> {
    hooks: Hooks,
    stop: Arc<StopSignal>,
    try_lock: L,
    make: M,
}

/// Why an attempt to run the exchange ended.
enum AttemptEnd {
    /// Another process runs the exchange.
    LockTaken,
    /// The thread was asked to stop.
    Stopped,
}

impl<L, M, G, E> Worker<L, M>
where
    L: FnMut() -> io::Result<Option<G>>,
    M: FnMut() -> io::Result<(E, DriverConfig)>,
    E: UdpEngine,
{
    fn run(mut self) {
        let mut backoff = Backoff::new();
        loop {
            let started = (self.hooks.now)();
            let wait = match catch_unwind(AssertUnwindSafe(|| self.attempt())) {
                Ok(Some(AttemptEnd::Stopped)) => return,
                Ok(Some(AttemptEnd::LockTaken)) => LOCK_RETRY,
                failed => {
                    count(&self.hooks.counters.panics, usize::from(failed.is_err()));
                    let uptime = (self.hooks.now)().saturating_sub(started);
                    backoff.next_delay_after(uptime)
                }
            };
            if self.stop.wait_requested(wait) {
                return;
            }
        }
    }

    /// Runs the exchange, unless another process does. The lock is released when this returns, so
    /// that another process can take over after a failure.
    fn attempt(&mut self) -> Option<AttemptEnd> {
        let counters = &self.hooks.counters;
        let lock = (self.try_lock)().inspect_err(|_| count(&counters.lock_errors, 1));
        let Some(_guard) = lock.ok()? else { return Some(AttemptEnd::LockTaken) };
        (self.make)()
            .and_then(|(engine, config)| {
                driver::run(engine, config, self.hooks.clone(), &self.stop)
            })
            .inspect_err(|_| count(&counters.start_errors, 1))
            .ok()
            .map(|()| AttemptEnd::Stopped)
    }
}
