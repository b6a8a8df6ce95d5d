//! Connections to a daemon. A connection is opened when it is needed, kept for later requests, and
//! closed when a response does not arrive in time. After a failure, no request is sent for a while.
//!
//! No call waits for another one: a call takes an idle connection, uses it, and puts it back. So
//! any number of threads may send requests at once, and a child works after a fork at any moment.

use std::io::{self, Read};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::lines::is_answer;

/// The maximum number of idle connections. If more threads send requests at once, each of the
/// others opens a new connection for each request.
const MAX_IDLE: usize = 64;
/// The maximum number of bytes of the answers to one call.
const LONGEST_ANSWER: usize = 1 << 20;

/// The times for which a client waits.
#[derive(Clone, Copy)]
pub(crate) struct Timeouts {
    /// For the answers to one call.
    pub(crate) timeout: Duration,
    /// After a first failure, before the next request.
    pub(crate) backoff: Duration,
    /// After many failures.
    pub(crate) max_backoff: Duration,
}

/// Counts of queries, and of failures.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) answered: AtomicU64,
    pub(crate) failed_open: AtomicU64,
    pub(crate) failures: AtomicU64,
}

/// The connections of a client to its daemon.
pub(crate) struct DaemonConnections {
    address: SockAddr,
    timeouts: Timeouts,
    /// The idle connections. A call skips a locked entry and never waits for it.
    idle: [Mutex<Option<Connection>>; MAX_IDLE],
    /// The zero of the times below.
    began: Instant,
    /// The current pause, in nanoseconds; 0 if the last request succeeded.
    pause: AtomicU64,
    /// The time of the last failure, in nanoseconds since `began`.
    failed_at: AtomicU64,
    /// The end of the pause, in nanoseconds since `began`. No request is sent before it.
    paused_until: AtomicU64,
    pub(crate) counts: Counts,
}

struct Connection {
    socket: Socket,
    /// The process that opened it. If parent and child both read from a connection, each would get
    /// answers to the other.
    pid: u32,
    /// The current timeout of the socket.
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
            paused_until: AtomicU64::new(0),
            counts: Counts::default(),
        }
    }

    /// Sends `count` lines and returns their answers. Returns `None` during a pause, if the answers
    /// do not arrive in time, or if one of them does not follow the protocol.
    pub(crate) fn request(&self, lines: &[u8], count: usize) -> Option<Vec<u8>> {
        let started = self.now();
        // Relaxed, here and below: these atomics order nothing else, and may be seen late.
        let answers = if started < self.paused_until.load(Ordering::Relaxed) {
            None
        } else {
            let answers = self.exchange(lines, count);
            answers.map_err(|_| self.fail(started)).ok()
        };
        let counted = match answers {
            Some(_) => &self.counts.answered,
            None => &self.counts.failed_open,
        };
        counted.fetch_add(count as u64, Ordering::Relaxed);
        answers
    }

    fn exchange(&self, lines: &[u8], count: usize) -> io::Result<Vec<u8>> {
        let deadline = Instant::now() + self.timeouts.timeout;
        let idle = self.take_idle().map(|connection| connection.exchange(lines, count, deadline));
        let (connection, answers) = match idle {
            // The daemon may have closed the idle connection to accept others.
            Some(Err(error)) if is_closed(&error) => {
                self.open()?.exchange(lines, count, deadline)?
            }
            Some(exchanged) => exchanged?,
            None => self.open()?.exchange(lines, count, deadline)?,
        };
        let mut each = answers.split(|byte| *byte == b'\n').take(count);
        if !each.all(is_answer) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.put_idle(connection);
        self.pause.store(0, Ordering::Relaxed);
        Ok(answers)
    }

    fn open(&self) -> io::Result<Connection> {
        Connection::open(&self.address, self.timeouts.timeout)
    }

    fn take_idle(&self) -> Option<Connection> {
        let pid = std::process::id();
        let free = self.idle.iter().filter_map(|entry| entry.try_lock().ok()?.take());
        // Connections of the parent are dropped, which closes them only in this process.
        free.into_iter().find(|connection| connection.pid == pid)
    }

    fn put_idle(&self, connection: Connection) {
        for entry in &self.idle {
            if let Ok(mut entry) = entry.try_lock()
                && entry.is_none()
            {
                *entry = Some(connection);
                return;
            }
        }
    }

    /// Closes all idle connections, because the daemon may have ended, and starts a pause. Each
    /// pause is twice as long as the one before. Requests that fail together start only one pause.
    #[cold]
    fn fail(&self, started: u64) {
        self.counts.failures.fetch_add(1, Ordering::Relaxed);
        let now = self.now();
        if started < self.failed_at.swap(now, Ordering::Relaxed) {
            return;
        }
        self.idle.iter().for_each(|entry| drop(entry.try_lock().map(|mut entry| entry.take())));
        let pause = Duration::from_nanos(self.pause.load(Ordering::Relaxed)).saturating_mul(2);
        let pause = pause.max(self.timeouts.backoff).min(self.timeouts.max_backoff);
        let pause = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        self.pause.store(pause, Ordering::Relaxed);
        self.paused_until.store(now.saturating_add(pause), Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}

impl Connection {
    fn open(address: &SockAddr, timeout: Duration) -> io::Result<Connection> {
        let socket = Socket::new(Domain::from(i32::from(address.family())), Type::STREAM, None)?;
        // For a Unix socket with a full backlog, this fails immediately.
        socket.connect_timeout(address, timeout)?;
        if !address.is_unix() {
            socket.set_tcp_nodelay(true)?;
        }
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        Ok(Connection { socket, pid: std::process::id(), timeout })
    }

    /// Sends lines and reads `count` answers. Drops the connection after an error.
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
            self.set_timeouts(deadline)?;
            match self.socket.send_with_flags(lines, NO_SIGNAL) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => lines = &lines[sent..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads `count` lines.
    fn receive(&mut self, count: usize, deadline: Instant) -> io::Result<Vec<u8>> {
        let mut answers = Vec::new();
        let mut found = 0;
        let mut part = [0; 1024];
        while found < count {
            self.set_timeouts(deadline)?;
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
        // Bytes after the last answer would be taken for the answer to the next request.
        match found == count && answers.ends_with(b"\n") {
            true => Ok(answers),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Sets the timeouts of the socket so that the next system call ends before the deadline. Most
    /// exchanges need no change, because the initial timeout is the time of a whole exchange.
    fn set_timeouts(&mut self, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // A timeout of up to twice the remaining time is accurate enough, and saves two system
        // calls.
        if left > self.timeout || left < self.timeout / 2 {
            self.socket.set_read_timeout(Some(left))?;
            self.socket.set_write_timeout(Some(left))?;
            self.timeout = left;
        }
        Ok(())
    }
}

/// Returns true if the other end has closed the connection.
fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// Writing to a daemon that has ended must not raise SIGPIPE, which would end the program.
#[cfg(not(any(target_vendor = "apple", windows)))]
const NO_SIGNAL: std::ffi::c_int = libc::MSG_NOSIGNAL;
/// On these systems socket2 sets an option of the socket instead.
#[cfg(any(target_vendor = "apple", windows))]
const NO_SIGNAL: std::ffi::c_int = 0;
