//! Parts of a table's memory that are made read-only for this process, so that it stops just before
//! it writes there: for good, or until it is answers to go on.

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
    /// One bit a line: which have hits to report.
    Dirty,
    /// One bit a page: which were ever used.
    Used,
}

/// Where a process waits that has met a read-only part: memory, and two pipes.
static START: AtomicUsize = AtomicUsize::new(0);
static LEN: AtomicUsize = AtomicUsize::new(0);
static ANSWER_FD: AtomicI32 = AtomicI32::new(-1);
static ORDER_FD: AtomicI32 = AtomicI32::new(-1);

impl Part {
    /// The first write there ends this process.
    pub(crate) fn kill_on_write(self, throttle: &Throttle) -> Result<(), Box<dyn Error>> {
        // No picture of the memory has to be kept of this death.
        let limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a plain system call with a value to read.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const limit) };
        let (start, len) = self.range(throttle)?;
        Ok(protect(start, len, libc::PROT_READ)?)
    }

    /// The first write there tells of it and waits for an answer.
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
        // SAFETY: the handler makes system calls only.
        unsafe { libc::signal(libc::SIGSEGV, handler as libc::sighandler_t) };
        Ok(protect(start, len, libc::PROT_READ)?)
    }

    /// Whole pages that hold the part, and no line of slots unless it is about them.
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

/// Goes on where it stopped when it has heard a byte.
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
    // SAFETY: lies in the table's mapping; who writes there stops, as is wanted.
    match unsafe { libc::mprotect(start as *mut libc::c_void, len, access) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Where the shared mapping of this length begins.
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
    Err("the table is not mapped".into())
}
