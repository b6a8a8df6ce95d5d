//! Signals belong to the application: a thread of ours must never be the one that runs its
//! handlers.
#![allow(unsafe_code, reason = "one of the homes of unsafe code; see ARCHITECTURE.md")]

use std::mem::MaybeUninit;
use std::ptr;

/// What a thread does to itself. Blocked, they would kill without the application's handler.
const FAULTS: [libc::c_int; 6] =
    [libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGSEGV, libc::SIGTRAP];

/// Runs `start` with all signals blocked. A thread started in it keeps them blocked.
pub(crate) fn blocked<T>(start: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::uninit();
    // SAFETY: the system fills the set it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    for signal in FAULTS {
        // SAFETY: the set was filled above.
        unsafe { libc::sigdelset(all.as_mut_ptr(), signal) };
    }
    let mut before = MaybeUninit::uninit();
    // SAFETY: reads the one set and fills the other.
    let changed =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    let _restore = (changed == 0).then_some(Restore(before));
    start()
}

/// The mask of this thread as it was. It is there: the system has filled it.
struct Restore(MaybeUninit<libc::sigset_t>);

impl Drop for Restore {
    fn drop(&mut self) {
        // SAFETY: reads a set that the system has filled.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, self.0.as_ptr(), ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_blocked(signal: libc::c_int) -> bool {
        let mut now = MaybeUninit::uninit();
        // SAFETY: fills the set it is given and changes nothing.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), now.as_mut_ptr()) };
        // SAFETY: the set was filled above.
        unsafe { libc::sigismember(now.as_ptr(), signal) == 1 }
    }

    #[test]
    fn a_thread_started_inside_has_signals_blocked_and_the_starter_has_not() {
        let ours = [libc::SIGTERM, libc::SIGINT, libc::SIGCHLD, libc::SIGUSR1, libc::SIGPROF];
        let inside = blocked(|| std::thread::spawn(move || ours.map(is_blocked))).join().unwrap();
        assert_eq!(inside, [true; 5]);
        assert_eq!(ours.map(is_blocked), [false; 5]);
        let faults = blocked(|| std::thread::spawn(|| FAULTS.map(is_blocked))).join().unwrap();
        assert_eq!(faults, [false; 6]);
    }
}
