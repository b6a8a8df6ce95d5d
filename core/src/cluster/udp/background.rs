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
use super::driven::Driven;
use super::driver::{self, Setup};
use super::hooks::{Hooks, count};
use super::stop::Stop;
use crate::os::signals;

/// How often the lock is tried.
const LOCK_PERIOD: Duration = Duration::from_millis(250);
/// How long to wait for the end of the thread.
const PATIENCE: Duration = Duration::from_millis(300);

/// The thread, which stops when this is dropped.
pub struct Background {
    thread: Option<JoinHandle<()>>,
    stop: Arc<Stop>,
    hooks: Hooks,
    generation: u64,
}

impl Background {
    /// Starts the thread. It holds what `try_lock` gives while it runs an engine made by `make`;
    /// both are called again after a failure.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start<G, E: Driven>(
        hooks: Hooks,
        try_lock: impl FnMut() -> io::Result<Option<G>> + Send + 'static,
        make: impl FnMut() -> io::Result<(E, Setup)> + Send + 'static,
    ) -> io::Result<Background> {
        let stop = Arc::new(Stop::default());
        let generation = (hooks.generation)();
        let worker = Worker { hooks: hooks.clone(), stop: stop.clone(), try_lock, make };
        let builder = thread::Builder::new().name("dthrottle".into());
        let thread = signals::blocked(|| {
            builder.spawn(move || {
                let stop = worker.stop.clone();
                worker.run();
                stop.ended();
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
            self.stop.want();
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
        self.stop.want();
        if self.stop.wait_ended(PATIENCE) {
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
    stop: Arc<Stop>,
    try_lock: L,
    make: M,
}

/// Why an attempt ended.
enum End {
    /// Another process exchanges.
    Taken,
    /// The thread shall stop.
    Stopped,
}

impl<L, M, G, E> Worker<L, M>
where
    L: FnMut() -> io::Result<Option<G>>,
    M: FnMut() -> io::Result<(E, Setup)>,
    E: Driven,
{
    fn run(mut self) {
        let mut backoff = Backoff::new();
        loop {
            let started = (self.hooks.now)();
            let wait = match catch_unwind(AssertUnwindSafe(|| self.attempt())) {
                Ok(Some(End::Stopped)) => return,
                Ok(Some(End::Taken)) => LOCK_PERIOD,
                failed => {
                    count(&self.hooks.counters.panics, usize::from(failed.is_err()));
                    let worked = (self.hooks.now)().saturating_sub(started);
                    backoff.wait_after(worked)
                }
            };
            if self.stop.wait_wanted(wait) {
                return;
            }
        }
    }

    /// Exchanges if no other process does. The lock is let go before anything else: whatever went
    /// wrong here may go well elsewhere.
    fn attempt(&mut self) -> Option<End> {
        let counters = &self.hooks.counters;
        let lock = (self.try_lock)().inspect_err(|_| count(&counters.lock_errors, 1));
        let Some(_held) = lock.ok()? else { return Some(End::Taken) };
        (self.make)()
            .and_then(|(engine, setup)| driver::run(engine, setup, self.hooks.clone(), &self.stop))
            .inspect_err(|_| count(&counters.start_errors, 1))
            .ok()
            .map(|()| End::Stopped)
    }
}
