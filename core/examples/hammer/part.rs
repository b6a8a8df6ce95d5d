//! Makes a part of a table's memory read-only for this process, so that the process is killed or
//! stopped just before it writes there.

use std::error::Error;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use dthrottle::Throttle;
use dthrottle::internals;

const PAGE: usize = 4096;
const LINE_SLOTS: usize = 4;
const PAGE_LINES: usize = 64;

/// A part of the table's memory.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Lines,
    /// One bit for each line with pending hits.
    Dirty,
    /// One bit for each page that was ever used.
    Used,
}

/// Used by the signal handler: the read-only memory, and two pipes.
static START: AtomicUsize = AtomicUsize::new(0);
static LEN: AtomicUsize = AtomicUsize::new(0);
static ANSWER_FD: AtomicI32 = AtomicI32::new(-1);
static ORDER_FD: AtomicI32 = AtomicI32::new(-1);

impl Part {
    /// Kills this process at its first write to the part.
    pub(crate) fn kill_on_write(self, throttle: &Throttle) -> Result<(), Box<dyn Error>> {
        // No core dump.
        let limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a plain system call with a value to read.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const limit) };
        let (start, len) = self.range(throttle)?;
        Ok(protect(start, len, libc::PROT_READ)?)
    }

    /// At the first write to the part, sends a byte and waits for a byte.
    pub(crate) fn stall_on_write(
        self,
        throttle: &Throttle,
        answer_pipe: &impl AsRawFd,
        orders: &impl AsRawFd,
    ) -> Result<(), Box<dyn Error>> {
        let (start, len) = self.range(throttle)?;
        START.store(start, Ordering::SeqCst);
        LEN.store(len, Ordering::SeqCst);
        ANSWER_FD.store(answer_pipe.as_raw_fd(), Ordering::SeqCst);
        ORDER_FD.store(orders.as_raw_fd(), Ordering::SeqCst);
        let handler = wait as extern "C" fn(i32);
        // SAFETY: the handler only makes system calls.
        unsafe { libc::signal(libc::SIGSEGV, handler as libc::sighandler_t) };
        Ok(protect(start, len, libc::PROT_READ)?)
    }

    /// The pages that contain the part. They contain no lines of slots unless the part is `Lines`.
    fn range(self, throttle: &Throttle) -> Result<(usize, usize), Box<dyn Error>> {
        let (bytes, slots) = internals::table_size(throttle);
        let pages = (slots / LINE_SLOTS).div_ceil(PAGE_LINES);
        let (lines, dirty) = (pages * PAGE, pages * size_of::<u64>());
        let (from, to) = match self {
            Part::Lines => (0, lines),
            Part::Dirty => (lines, lines + dirty),
            Part::Used => (lines + dirty, lines + dirty + pages.div_ceil(64) * size_of::<u64>()),
        };
        let from = from / PAGE * PAGE;
        Ok((mapping(bytes)? + from, (to - from).next_multiple_of(PAGE)))
    }
}

/// Signal handler: sends a byte, waits for a byte, makes the memory writable, and continues.
extern "C" fn wait(_: i32) {
    let (answer_pipe, orders): (RawFd, RawFd) =
        (ANSWER_FD.load(Ordering::SeqCst), ORDER_FD.load(Ordering::SeqCst));
    let mut byte = 0_u8;
    // SAFETY: one byte to read from.
    unsafe { libc::write(answer_pipe, (&raw const byte).cast(), 1) };
    // SAFETY: one byte to write to.
    unsafe { libc::read(orders, (&raw mut byte).cast(), 1) };
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let _ = protect(START.load(Ordering::SeqCst), LEN.load(Ordering::SeqCst), both);
}

fn protect(start: usize, len: usize, access: i32) -> io::Result<()> {
    // SAFETY: within the table's mapping. A process that writes there is stopped, which is
    // intended.
    match unsafe { libc::mprotect(start as *mut libc::c_void, len, access) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The start of the shared mapping with this length.
fn mapping(bytes: usize) -> Result<usize, Box<dyn Error>> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    for line in maps.lines().filter(|line| line.contains(" rw-s ")) {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let (start, end) = range.ok_or("a range")?;
        let start = usize::from_str_radix(start, 16)?;
        if usize::from_str_radix(end, 16)? - start == bytes {
            return Ok(start);
        }
    }
    Err("no shared mapping has the size of the table".into())
}
