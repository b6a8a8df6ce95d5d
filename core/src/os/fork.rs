//! Descriptors that a forked child must not keep: a lock that it inherits stays held when the
//! process dies that took it, and a socket takes datagrams that nobody reads.
//!
//! A child closes them before it does anything else. In a child only what a signal handler may do
//! is allowed: the other threads are gone, with whatever they held. So there are no locks here.
#![allow(unsafe_code, reason = "one of the homes of unsafe code; see ARCHITECTURE.md")]

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// How many descriptors are watched over.
const MAX_GUARDED: usize = 256;
const FREE: RawFd = -1;
/// How often to start again when somebody forks meanwhile, and how long to wait: a big process
/// takes a while.
const TRIES: usize = 1000;
const PAUSE: Duration = Duration::from_millis(1);

static GUARDED: [AtomicI32; MAX_GUARDED] = [const { AtomicI32::new(FREE) }; MAX_GUARDED];
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// How many forks have begun in this process, and how many of them are over.
static BEGUN: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicU32 = AtomicU32::new(0);
static IS_WATCHING: AtomicBool = AtomicBool::new(false);

/// Counts the forks between the first process and this one: another number means that this is a
/// child, with one thread and none of what was guarded.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Something with a descriptor that belongs to this process alone.
#[derive(Debug)]
pub(crate) struct Guarded<F: AsFd> {
    /// Always there until it is dropped.
    inner: Option<F>,
    place: usize,
    generation: u32,
}

/// Opens something that no child will keep. May call `open` more than once: what was opened while
/// another thread forked may be in a child's hands.
pub(crate) fn guard<F: AsFd>(open: impl Fn() -> io::Result<F>) -> io::Result<Guarded<F>> {
    watch()?;
    for _ in 0..TRIES {
        let begun = BEGUN.load(Ordering::SeqCst);
        if ENDED.load(Ordering::SeqCst) == begun {
            let guarded = Guarded::new(open()?)?;
            // A fork that begins from now on finds it in its place.
            if BEGUN.load(Ordering::SeqCst) == begun {
                return Ok(guarded);
            }
        }
        thread::sleep(PAUSE);
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "processes are forked all the time"))
}

impl<F: AsFd> Guarded<F> {
    fn new(inner: F) -> io::Result<Guarded<F>> {
        let fd = inner.as_fd().as_raw_fd();
        let generation = generation();
        let take = |place: &AtomicI32| {
            place.compare_exchange(FREE, fd, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        };
        match GUARDED.iter().position(take) {
            Some(place) => Ok(Guarded { inner: Some(inner), place, generation }),
            None => Err(io::Error::other(format!("more than {MAX_GUARDED} tables are exchanged"))),
        }
    }

    /// What is guarded; nothing: this is a child's copy.
    pub(crate) fn get(&self) -> Option<&F> {
        self.inner.as_ref().filter(|_| self.generation == generation())
    }
}

impl<F: AsFd> Drop for Guarded<F> {
    fn drop(&mut self) {
        if self.get().is_some() {
            // First this: once it is closed, its number may be that of something else.
            GUARDED[self.place].store(FREE, Ordering::SeqCst);
        } else {
            // Closed by `after_in_child`, so that its number may be that of something else.
            mem::forget(self.inner.take());
        }
    }
}

/// Has a child close a descriptor that is not used yet. If there is no place left it is inherited.
pub(crate) fn register(fd: RawFd) {
    let take = |place: &AtomicI32| {
        place.compare_exchange(FREE, fd, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    };
    if watch().is_ok() {
        let _ = GUARDED.iter().position(take);
    }
}

/// The opposite, right before the descriptor is closed.
pub(crate) fn unregister(fd: RawFd) {
    for place in &GUARDED {
        if place.compare_exchange(fd, FREE, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

/// Sees to it that forks are heard of. Twice does no harm.
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
    // There is no other thread any more that could end its fork.
    ENDED.store(BEGUN.load(Ordering::SeqCst), Ordering::SeqCst);
    GENERATION.fetch_add(1, Ordering::SeqCst);
    for place in &GUARDED {
        let fd = place.swap(FREE, Ordering::SeqCst);
        if fd != FREE {
            // SAFETY: the descriptor is open: it leaves its place before it is closed. Nobody
            // uses it: whoever held it looks at the generation first.
            unsafe { libc::close(fd) };
        }
    }
}
