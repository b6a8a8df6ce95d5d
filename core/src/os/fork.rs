//! Closes descriptors that a forked child must not keep. An inherited lock would stay locked after
//! the process that took it has died, and an inherited socket would receive datagrams that no
//! process reads.
//!
//! A child closes them in its fork handler. Only async-signal-safe calls are allowed there, because
//! the other threads are gone and the locks that they held stay locked. So this module uses no
//! locks.
#![allow(unsafe_code, reason = "unsafe code is allowed here; see ARCHITECTURE.md")]

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// The maximum number of descriptors that can be guarded.
const MAX_GUARDED: usize = 256;
const FREE: RawFd = -1;
/// How often `guard` starts again if another thread forks meanwhile, and how long it waits each
/// time. The fork of a big process takes a while.
const TRIES: usize = 1000;
const PAUSE: Duration = Duration::from_millis(1);

static GUARDED: [AtomicI32; MAX_GUARDED] = [const { AtomicI32::new(FREE) }; MAX_GUARDED];
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Number of forks that this process has begun, and how many of them have ended.
static BEGUN: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicU32 = AtomicU32::new(0);
static IS_WATCHING: AtomicBool = AtomicBool::new(false);

/// The number of forks between the first process and this one. If it has changed, this is a forked
/// child with a single thread and without guarded descriptors.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// A value with a descriptor that belongs to this process only.
#[derive(Debug)]
pub(crate) struct Guarded<F: AsFd> {
    /// `Some` until the value is dropped.
    inner: Option<F>,
    index: usize,
    generation: u32,
}

/// Opens a descriptor that no child inherits. May call `open` several times, because a descriptor
/// that was opened while another thread forked may have been inherited.
pub(crate) fn guard<F: AsFd>(open: impl Fn() -> io::Result<F>) -> io::Result<Guarded<F>> {
    watch()?;
    for _ in 0..TRIES {
        let begun = BEGUN.load(Ordering::SeqCst);
        if ENDED.load(Ordering::SeqCst) == begun {
            let guarded = Guarded::new(open()?)?;
            // A fork that begins from now on finds the descriptor in `GUARDED`.
            if BEGUN.load(Ordering::SeqCst) == begun {
                return Ok(guarded);
            }
        }
        thread::sleep(PAUSE);
    }
    Err(io::Error::new(
        io::ErrorKind::WouldBlock,
        "this process forks too often to open a descriptor that no child inherits",
    ))
}

impl<F: AsFd> Guarded<F> {
    fn new(inner: F) -> io::Result<Guarded<F>> {
        let fd = inner.as_fd().as_raw_fd();
        let generation = generation();
        let take = |entry: &AtomicI32| {
            entry.compare_exchange(FREE, fd, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        };
        match GUARDED.iter().position(take) {
            Some(index) => Ok(Guarded { inner: Some(inner), index, generation }),
            None => Err(io::Error::other(format!(
                "more than {MAX_GUARDED} descriptors of exchanged tables are open"
            ))),
        }
    }

    /// Returns the guarded value, or `None` in a forked child.
    pub(crate) fn get(&self) -> Option<&F> {
        self.inner.as_ref().filter(|_| self.generation == generation())
    }
}

impl<F: AsFd> Drop for Guarded<F> {
    fn drop(&mut self) {
        if self.get().is_some() {
            // Remove the descriptor first, because its number may be reused once it is closed.
            GUARDED[self.index].store(FREE, Ordering::SeqCst);
        } else {
            // `after_in_child` has closed the descriptor, so its number may belong to another file.
            mem::forget(self.inner.take());
        }
    }
}

/// Makes children close a descriptor that is not used yet. If `GUARDED` is full, they inherit it.
pub(crate) fn register(fd: RawFd) {
    let take = |entry: &AtomicI32| {
        entry.compare_exchange(FREE, fd, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    };
    if watch().is_ok() {
        let _ = GUARDED.iter().position(take);
    }
}

/// Undoes `register`. Call it right before the descriptor is closed.
pub(crate) fn unregister(fd: RawFd) {
    for entry in &GUARDED {
        if entry.compare_exchange(fd, FREE, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

/// Installs the fork handlers. Installing them twice does no harm.
pub(crate) fn watch() -> io::Result<()> {
    if IS_WATCHING.load(Ordering::SeqCst) {
        return Ok(());
    }
    // SAFETY: the three functions use only atomics and, in the child, `close`.
    match unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_in_parent), Some(after_in_child))
    } {
        0 => {
            IS_WATCHING.store(true, Ordering::SeqCst);
            Ok(())
        }
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

extern "C" fn before_fork() {
    BEGUN.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn after_in_parent() {
    ENDED.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn after_in_child() {
    // No other thread is left in the child that could end its fork.
    ENDED.store(BEGUN.load(Ordering::SeqCst), Ordering::SeqCst);
    GENERATION.fetch_add(1, Ordering::SeqCst);
    for entry in &GUARDED {
        let fd = entry.swap(FREE, Ordering::SeqCst);
        if fd != FREE {
            // SAFETY: the descriptor is open, because it is removed from `GUARDED` before it is
            // closed. It is not used in this process, because its owner compares the generation
            // first.
            unsafe { libc::close(fd) };
        }
    }
}
