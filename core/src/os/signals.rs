//! Blocks signals in the crate's threads, so that an application's signal handlers never run in
//! them.
#![allow(unsafe_code, reason = "unsafe code is allowed here; see ARCHITECTURE.md")]

use std::mem::MaybeUninit;
use std::ptr;

/// Signals that a thread causes by its own fault. If they were blocked, they would kill the process
/// without calling the application's handler.
const FAULTS: [libc::c_int; 6] =
    [libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGSEGV, libc::SIGTRAP];

/// Runs `start` with all signals blocked. A thread that it starts keeps them blocked.
pub(crate) fn blocked<T>(start: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::uninit();
    // SAFETY: the system initializes the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    for signal in FAULTS {
        // SAFETY: the set was initialized above.
        unsafe { libc::sigdelset(all.as_mut_ptr(), signal) };
    }
    let mut before = MaybeUninit::uninit();
    // SAFETY: reads one set and initializes the other.
    let changed =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    let _restore = (changed == 0).then_some(Restore(before));
    start()
}

/// Restores the signal mask of this thread, which the system has initialized.
struct Restore(MaybeUninit<libc::sigset_t>);

impl Drop for Restore {
    fn drop(&mut self) {
        // SAFETY: reads a set that the system has initialized.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, self.0.as_ptr(), ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_blocked(signal: libc::c_int) -> bool {
        let mut now = MaybeUninit::uninit();
        // SAFETY: initializes the set and changes nothing.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), now.as_mut_ptr()) };
        // SAFETY: the set was initialized above.
        unsafe { libc::sigismember(now.as_ptr(), signal) == 1 }
    }

    #[test]
    fn signals_are_blocked_in_the_started_thread_but_not_in_the_caller() {
        let ours = [libc::SIGTERM, libc::SIGINT, libc::SIGCHLD, libc::SIGUSR1, libc::SIGPROF];
        let inside = blocked(|| std::thread::spawn(move || ours.map(is_blocked))).join().unwrap();
        assert_eq!(inside, [true; 5]);
        assert_eq!(ours.map(is_blocked), [false; 5]);
        let faults = blocked(|| std::thread::spawn(|| FAULTS.map(is_blocked))).join().unwrap();
        assert_eq!(faults, [false; 6]);
    }
}
