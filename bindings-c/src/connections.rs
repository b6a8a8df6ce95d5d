//! Connections to a daemon: made when they are needed, kept for the next who asks, let go when an
//! answer does not come in time. After a failure nobody is asked for a while.
//!
//! No call waits for another: a connection is taken out of its place, used, and put back. So any
//! number of threads may ask at once, and a fork at any moment leaves a child that can go on.

use std::io::{self, Read};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::lines::is_answer;

/// More than so many threads at once make a connection for each question.
const MAX_IDLE: usize = 64;
const LONGEST_ANSWER: usize = 1 << 20;

/// How long to wait, for what.
#[derive(Clone, Copy)]
pub(crate) struct Timeouts {
    /// For the answers to one call.
    pub(crate) timeout: Duration,
    /// Before anybody is asked again, after a first failure.
    pub(crate) backoff: Duration,
    /// The same after many.
    pub(crate) max_backoff: Duration,
}

/// What was counted.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) asked: AtomicU64,
    pub(crate) failed_open: AtomicU64,
    pub(crate) failures: AtomicU64,
}

/// A daemon that can be asked.
pub(crate) struct DaemonConnections {
    address: SockAddr,
    timeouts: Timeouts,
    /// Connections that wait. A place that is locked is passed by, never waited for.
    idle: [Mutex<Option<Connection>>; MAX_IDLE],
    began: Instant,
    /// The present pause, in nanoseconds; 0: the last who asked was answered.
    pause: AtomicU64,
    /// When the last failure was, in nanoseconds since it began, and until when nobody is asked.
    failed_at: AtomicU64,
    silent_until: AtomicU64,
    pub(crate) counts: Counts,
}

struct Connection {
    socket: Socket,
    /// Whose it is. A parent's connection is the parent's: two who read from it would get each
    /// other's answers.
    pid: u32,
    /// What the socket has been told.
    timeout: Duration,
}

impl DaemonConnections {
    pub(crate) fn new(address: SockAddr, timeouts: Timeouts) -> DaemonConnections {
        DaemonConnections {
            address,
            timeouts,
            idle: [const { Mutex::new(None) }; MAX_IDLE],
            began: Instant::now(),
            pause: AtomicU64::new(0),
            failed_at: AtomicU64::new(0),
            silent_until: AtomicU64::new(0),
            counts: Counts::default(),
        }
    }

    /// Sends lines and gives their answers; nothing if they do not come in time, or one of them is no
    /// daemon's. Counts either.
    pub(crate) fn request(&self, lines: &[u8], count: usize) -> Option<Vec<u8>> {
        let started = self.now();
        // Relaxed, here and below: nothing else hangs on these, and a moment late is fine.
        let answers = if started < self.silent_until.load(Ordering::Relaxed) {
            None
        } else {
            let answers = self.exchange(lines, count);
            answers.map_err(|_| self.fail(started)).ok()
        };
        let counted = match answers {
            Some(_) => &self.counts.asked,
            None => &self.counts.failed_open,
        };
        counted.fetch_add(count as u64, Ordering::Relaxed);
        answers
    }

    fn exchange(&self, lines: &[u8], count: usize) -> io::Result<Vec<u8>> {
        let deadline = Instant::now() + self.timeouts.timeout;
        let kept = self.take().map(|connection| connection.exchange(lines, count, deadline));
        let (connection, answers) = match kept {
            // The daemon may close an idle connection to make room for others.
            Some(Err(error)) if is_closed(&error) => {
                self.open()?.exchange(lines, count, deadline)?
            }
            Some(exchanged) => exchanged?,
            None => self.open()?.exchange(lines, count, deadline)?,
        };
        // It ends with a newline.
        let mut each = answers.split(|byte| *byte == b'\n').take(count);
        if !each.all(is_answer) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.keep(connection);
        self.pause.store(0, Ordering::Relaxed);
        Ok(answers)
    }

    fn open(&self) -> io::Result<Connection> {
        Connection::open(&self.address, self.timeouts.timeout)
    }

    fn take(&self) -> Option<Connection> {
        let pid = std::process::id();
        let free = self.idle.iter().filter_map(|place| place.try_lock().ok()?.take());
        // A parent's is closed here, which the parent does not notice.
        free.into_iter().find(|connection| connection.pid == pid)
    }

    fn keep(&self, connection: Connection) {
        for place in &self.idle {
            if let Ok(mut place) = place.try_lock()
                && place.is_none()
            {
                *place = Some(connection);
                return;
            }
        }
    }

    /// Lets go of all connections that wait, for the daemon behind them may be gone, and asks
    /// nobody for a while: twice as long as before, but once for all who failed together.
    #[cold]
    fn fail(&self, started: u64) {
        self.counts.failures.fetch_add(1, Ordering::Relaxed);
        let now = self.now();
        if started < self.failed_at.swap(now, Ordering::Relaxed) {
            return;
        }
        self.idle.iter().for_each(|place| drop(place.try_lock().map(|mut place| place.take())));
        let pause = Duration::from_nanos(self.pause.load(Ordering::Relaxed)).saturating_mul(2);
        let pause = pause.max(self.timeouts.backoff).min(self.timeouts.max_backoff);
        let pause = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        self.pause.store(pause, Ordering::Relaxed);
        self.silent_until.store(now.saturating_add(pause), Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}

impl Connection {
    fn open(address: &SockAddr, timeout: Duration) -> io::Result<Connection> {
        let socket = Socket::new(Domain::from(i32::from(address.family())), Type::STREAM, None)?;
        // At once an error when a Unix socket has no room for one more that waits.
        socket.connect_timeout(address, timeout)?;
        if !address.is_unix() {
            socket.set_tcp_nodelay(true)?;
        }
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        Ok(Connection { socket, pid: std::process::id(), timeout })
    }

    /// Sends lines and reads as many answers. The connection is dropped if that fails.
    fn exchange(
        mut self,
        lines: &[u8],
        count: usize,
        deadline: Instant,
    ) -> io::Result<(Connection, Vec<u8>)> {
        self.send(lines, deadline)?;
        let answers = self.receive(count, deadline)?;
        Ok((self, answers))
    }

    fn send(&mut self, mut lines: &[u8], deadline: Instant) -> io::Result<()> {
        while !lines.is_empty() {
            self.in_time(deadline)?;
            match self.socket.send_with_flags(lines, NO_SIGNAL) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => lines = &lines[sent..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads so many lines.
    fn receive(&mut self, count: usize, deadline: Instant) -> io::Result<Vec<u8>> {
        let mut answers = Vec::new();
        let mut found = 0;
        let mut part = [0; 1024];
        while found < count {
            self.in_time(deadline)?;
            match self.socket.read(&mut part) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    found += part[..read].iter().filter(|byte| **byte == b'\n').count();
                    answers.extend_from_slice(&part[..read]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if answers.len() > LONGEST_ANSWER {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        // More than was asked for: what follows would be nobody's.
        match found == count && answers.ends_with(b"\n") {
            true => Ok(answers),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Sees to it that the next call ends by the deadline. Most need one call and nothing new: the
    /// time that the socket was told at first is the time of a whole exchange.
    fn in_time(&mut self, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // A little more than is left is as good, and saves two calls of the system.
        if left > self.timeout || left < self.timeout / 2 {
            self.socket.set_read_timeout(Some(left))?;
            self.socket.set_write_timeout(Some(left))?;
            self.timeout = left;
        }
        Ok(())
    }
}

/// Whether the other end has closed the connection.
fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// A daemon that is gone must not end the program that asks it.
#[cfg(not(any(target_vendor = "apple", windows)))]
const NO_SIGNAL: std::ffi::c_int = libc::MSG_NOSIGNAL;
/// There socket2 tells the socket.
#[cfg(any(target_vendor = "apple", windows))]
const NO_SIGNAL: std::ffi::c_int = 0;
