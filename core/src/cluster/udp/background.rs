//! The life of the thread that exchanges for a table: it waits until no other process does, then
//! does it until it shall stop.
//!
//! There is one per process and table. It never ends the process, whatever goes wrong in it, and
//! a forked child, which has no threads of its parent, can start its own.

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

/// How often the lock is tried.
const LOCK_RETRY: Duration = Duration::from_millis(250);
/// How long to wait for the end of the thread.
const STOP_TIMEOUT: Duration = Duration::from_millis(300);

/// The thread, which stops when this is dropped.
pub struct Background {
    thread: Option<JoinHandle<()>>,
    stop: Arc<StopSignal>,
    hooks: Hooks,
    generation: u64,
}

impl Background {
    /// Starts the thread. It holds what `try_lock` gives while it runs an engine made by `make`;
    /// both are called again after a failure.
    ///
    /// # Errors
    /// There is no thread to be had.
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

    /// Whether the thread is one of this process: after a fork it is not, and another must be
    /// started.
    pub fn is_here(&self) -> bool {
        self.generation == (self.hooks.generation)()
    }

    /// The same as `stop`, which may come later, but waits for nothing.
    pub(crate) fn request_stop(&self) {
        if self.is_here() {
            self.stop.request();
        }
    }

    /// Says goodbye to peers and ends the thread. Waits for that, but not long.
    pub fn stop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if !self.is_here() {
            // To wait for it would take forever, and its locks may be held forever.
            mem::forget(thread);
            return;
        }
        self.stop.request();
        if self.stop.wait_ended(STOP_TIMEOUT) {
            // It has nothing more to do. A panic outside of the engine's was shown already.
            let _ = thread.join();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What the thread runs.
struct Worker<L, M> {
    hooks: Hooks,
    stop: Arc<StopSignal>,
    try_lock: L,
    make: M,
}

/// Why an attempt ended.
enum AttemptEnd {
    /// Another process exchanges.
    LockTaken,
    /// The thread shall stop.
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

    /// Exchanges if no other process does. The lock is let go before anything else: whatever went
    /// wrong here may go well elsewhere.
    fn attempt(&mut self) -> Option<AttemptEnd> {
        let counters = &self.hooks.counters;
        let lock = (self.try_lock)().inspect_err(|_| count(&counters.lock_errors, 1));
        let Some(_guard) = lock.ok()? else { return Some(AttemptEnd::LockTaken) };
        (self.make)()
            .and_then(|(engine, setup)| driver::run(engine, setup, self.hooks.clone(), &self.stop))
            .inspect_err(|_| count(&counters.start_errors, 1))
            .ok()
            .map(|()| AttemptEnd::Stopped)
    }
}
