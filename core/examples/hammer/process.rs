//! Forked children, memory that they share, and a gate that opens for all of them at once.

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

/// Starts a child that does this work and nothing else, and dies with this process.
pub(crate) fn fork(work: impl FnOnce()) -> io::Result<Child> {
    fork_orphan(|| {
        // SAFETY: a plain system call; nobody survives the one who counts.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        work();
    })
}

/// Starts a child that does this work and nothing else, whatever becomes of this process. It must
/// find an end by itself.
pub(crate) fn fork_orphan(work: impl FnOnce()) -> io::Result<Child> {
    // SAFETY: this program never has a second thread, so a child may go on as if it were alone.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    if pid > 0 {
        return Ok(Child(pid));
    }
    let code = i32::from(catch_unwind(AssertUnwindSafe(work)).is_err());
    // SAFETY: ends this process, without what the parent has yet to print.
    unsafe { libc::_exit(code) }
}

impl Child {
    pub(crate) fn wait(self) -> io::Result<End> {
        let mut status = 0;
        // SAFETY: `status` is there to be written to.
        let pid = unsafe { libc::waitpid(self.0, &raw mut status, 0) };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(match libc::WIFSIGNALED(status) {
            true => End::Signal(libc::WTERMSIG(status)),
            false => End::Code(libc::WEXITSTATUS(status)),
        })
    }

    /// Ends the child wherever it is. It must be waited for all the same.
    pub(crate) fn kill(&self) {
        // SAFETY: the child has not been waited for, so the number is still its own.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }
}

/// Waits for children that must all end well.
pub(crate) fn join(children: Vec<Child>) -> io::Result<()> {
    for child in children {
        match child.wait()? {
            End::Code(0) => {}
            end => return Err(io::Error::other(format!("a child ended with {end:?}"))),
        }
    }
    Ok(())
}

/// Zeroes that are shared with all children forked from now on, for the life of this process.
pub(crate) fn shared(count: usize) -> io::Result<&'static [AtomicU64]> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    let bytes = count * size_of::<AtomicU64>();
    // SAFETY: a new mapping at a place of the system's choice touches no other memory.
    let start = unsafe {
        libc::mmap(std::ptr::null_mut(), bytes, access, flags | libc::MAP_ANONYMOUS, -1, 0)
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: so many zeroed, aligned words are there and never unmapped.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), count) })
}

/// Lets others run.
pub(crate) fn yield_now() {
    std::thread::yield_now();
}

/// Holds children until all are there.
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

    /// In a child: waits.
    pub(crate) fn wait(&mut self) -> io::Result<()> {
        drop(self.writer.take());
        self.arrived[0].fetch_add(1, Ordering::SeqCst);
        // Ends when nobody can write any more: the parent is the last.
        self.reader.read_to_end(&mut Vec::new())?;
        Ok(())
    }

    /// In the parent: opens when so many wait.
    pub(crate) fn open(mut self, children: usize) {
        while self.arrived[0].load(Ordering::SeqCst) < children as u64 {
            yield_now();
        }
        drop(self.writer.take());
    }
}

/// Numbers that look random, another row for every seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * limit as u128) >> 64) as usize
    }
}

/// Waits for children that were killed, and must not have ended in another way.
pub(crate) fn wait_for_killed(killed: impl IntoIterator<Item = Child>) -> io::Result<()> {
    for child in killed {
        match child.wait()? {
            End::Signal(libc::SIGKILL) => {}
            end => return Err(io::Error::other(format!("a child ended with {end:?}"))),
        }
    }
    Ok(())
}
