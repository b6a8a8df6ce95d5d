//! Forked children, memory that they share, and a gate at which they start together.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// A child of this process.
pub(crate) struct Child(libc::pid_t);

/// How a child ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Code(i32),
    Signal(i32),
}

/// Starts a child that runs only `work`, and is killed when this process ends.
pub(crate) fn fork(work: impl FnOnce()) -> io::Result<Child> {
    fork_orphan(|| {
        // SAFETY: a plain system call. The child must not outlive the process that counts.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        work();
    })
}

/// Starts a child that runs only `work`, and may outlive this process. It must end by itself.
pub(crate) fn fork_orphan(work: impl FnOnce()) -> io::Result<Child> {
    // SAFETY: this program has only one thread here, so the child may call any function.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    if pid > 0 {
        return Ok(Child(pid));
    }
    let code = i32::from(catch_unwind(AssertUnwindSafe(work)).is_err());
    // SAFETY: ends this process without flushing the parent's buffered output.
    unsafe { libc::_exit(code) }
}

impl Child {
    pub(crate) fn wait(self) -> io::Result<End> {
        let mut status = 0;
        // SAFETY: `status` is valid for writing.
        let pid = unsafe { libc::waitpid(self.0, &raw mut status, 0) };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(match libc::WIFSIGNALED(status) {
            true => End::Signal(libc::WTERMSIG(status)),
            false => End::Code(libc::WEXITSTATUS(status)),
        })
    }

    /// Kills the child, which must still be waited for.
    pub(crate) fn kill(&self) {
        // SAFETY: the child has not been waited for, so the ID is still its own.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }
}

/// Waits for children, which must exit with code 0.
pub(crate) fn join(children: Vec<Child>) -> io::Result<()> {
    for child in children {
        match child.wait()? {
            End::Code(0) => {}
            end => return Err(io::Error::other(format!("a child ended with {end:?}"))),
        }
    }
    Ok(())
}

/// Zeroed words, shared with all children that are forked from now on, for the lifetime of this
/// process.
pub(crate) fn shared(count: usize) -> io::Result<&'static [AtomicU64]> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    let bytes = count * size_of::<AtomicU64>();
    // SAFETY: a new mapping at an address that the system chooses touches no other memory.
    let start = unsafe {
        libc::mmap(std::ptr::null_mut(), bytes, access, flags | libc::MAP_ANONYMOUS, -1, 0)
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping has this many zeroed, aligned words, and is never unmapped.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), count) })
}

/// Lets other threads and processes run.
pub(crate) fn yield_now() {
    std::thread::yield_now();
}

/// Blocks children until all of them have arrived.
pub(crate) struct StartGate {
    arrived: &'static [AtomicU64],
    reader: PipeReader,
    writer: Option<PipeWriter>,
}

impl StartGate {
    pub(crate) fn new() -> io::Result<StartGate> {
        let (reader, writer) = io::pipe()?;
        Ok(StartGate { arrived: shared(1)?, reader, writer: Some(writer) })
    }

    /// Waits at the gate. Called in a child.
    pub(crate) fn wait(&mut self) -> io::Result<()> {
        drop(self.writer.take());
        self.arrived[0].fetch_add(1, Ordering::SeqCst);
        // Reaches the end of file when the parent, as the last writer, closes the pipe.
        self.reader.read_to_end(&mut Vec::new())?;
        Ok(())
    }

    /// Opens the gate when this many children wait. Called in the parent.
    pub(crate) fn open(mut self, children: usize) {
        while self.arrived[0].load(Ordering::SeqCst) < children as u64 {
            yield_now();
        }
        drop(self.writer.take());
    }
}

/// Pseudo-random numbers, a different sequence for every seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * limit as u128) >> 64) as usize
    }
}

/// Waits for children, which must have been killed.
pub(crate) fn wait_for_killed(killed: impl IntoIterator<Item = Child>) -> io::Result<()> {
    for child in killed {
        match child.wait()? {
            End::Signal(libc::SIGKILL) => {}
            end => return Err(io::Error::other(format!("a child ended with {end:?}"))),
        }
    }
    Ok(())
}
