//! One connection: reads input, answers it, and stores at most a bounded remainder.
//!
//! Buffers belong to the thread: an idle connection costs a task and a socket. A connection stores
//! bytes only while its client does not read answers.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::daemon::Daemon;
use crate::first_line::{FirstLine, Protocol};
use crate::histogram::Histogram;
use crate::limit::Slot;
use crate::line::{Consumed, LineContext, Lines, MAX_OUTPUT};
use crate::resp::Resp;

/// How much is read at once.
const INPUT: usize = 32 * 1024;

/// The response to an HTTP request on a port for lines or RESP.
const NO_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\
    Connection: close\r\n\r\ndthrottled does not speak HTTP here; its key http says where\n";

/// A Unix or TCP socket.
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// The protocol of a connection and its state.
pub(crate) enum Session {
    Lines(Lines),
    Resp(Resp),
}

pub(crate) struct Connection {
    daemon: Arc<Daemon>,
    stream: Stream,
    session: Session,
    /// The first line of a TCP connection, until it is complete.
    first_line: Option<FirstLine>,
    /// The last read filled the buffer, so there may be more.
    may_have_more: bool,
    /// Dropped after `stream`, so that the descriptor is free when the slot is.
    slot: Slot,
}

/// The result of reading and answering once.
enum Step {
    /// All input is answered.
    Done,
    /// The client does not read: unsent answers, and input that is not processed yet.
    Blocked(Vec<u8>, Vec<u8>),
    /// The connection ends: the last answer is sent, or the client has left.
    End,
}

/// The buffers of a thread.
struct Buffers {
    input: Box<[u8]>,
    output: Vec<u8>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers {
        input: vec![0; INPUT].into(),
        output: Vec::with_capacity(2 * MAX_OUTPUT),
    });
}

impl Connection {
    pub(crate) fn new(
        daemon: &Arc<Daemon>,
        stream: Stream,
        session: Session,
        slot: Slot,
    ) -> Connection {
        let first_line = matches!(stream, Stream::Tcp(_)).then(FirstLine::default);
        Connection {
            daemon: Arc::clone(daemon),
            stream,
            session,
            first_line,
            may_have_more: false,
            slot,
        }
    }

    /// Answers until the client leaves, an error occurs, or the daemon ends.
    pub(crate) async fn run(mut self, mut shutdown: watch::Receiver<bool>) -> io::Result<()> {
        loop {
            let step = tokio::select! {
                biased;
                step = poll_fn(|cx| self.poll_step(cx)) => step?,
                _ = shutdown.wait_for(|shutdown| *shutdown) => break,
            };
            if !self.finish(step).await? {
                return Ok(());
            }
            if self.may_have_more {
                // Gives other connections of this thread a turn. A client that sends without pause
                // would delay them for longer than their timeouts.
                yield_now().await;
            }
        }
        // Input that has arrived before the shutdown is still answered.
        loop {
            let step = self.final_step()?;
            if !self.finish(step).await? {
                return Ok(());
            }
            // A client that keeps sending must not delay the end: the caller has a timeout.
            yield_now().await;
        }
    }

    /// Reads and answers once without waiting. Reads the socket directly, because the runtime may
    /// not have noticed the input yet.
    fn final_step(&mut self) -> io::Result<Step> {
        BUFFERS.with_borrow_mut(|Buffers { input, output }| match self.stream.receive(input) {
            Ok(0) => Ok(Step::End),
            Ok(count) => self.process(&input[..count], output),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Step::End),
            Err(error) => Err(error),
        })
    }

    /// Reads once and answers. Does not wait in between, so it may use the buffers of the thread.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Step>> {
        BUFFERS.with_borrow_mut(|Buffers { input, output }| {
            let mut filled = ReadBuf::new(input);
            ready!(self.stream.poll_read(cx, &mut filled))?;
            let input = filled.filled();
            Poll::Ready(match input.is_empty() {
                true => Ok(Step::End),
                false => self.process(input, output),
            })
        })
    }

    /// Answers input, or ends the connection if it is of another protocol.
    fn process(&mut self, input: &[u8], output: &mut Vec<u8>) -> io::Result<Step> {
        self.slot.touch();
        self.may_have_more = input.len() == INPUT;
        match self.first_line.as_mut().map_or(Protocol::Expected, |line| line.feed(input)) {
            Protocol::Unknown => {}
            Protocol::Expected => self.first_line = None,
            other => {
                self.daemon.state.counts.other_protocol.add(1);
                if other == Protocol::Http {
                    self.stream.send(NO_HTTP)?;
                }
                return Ok(Step::End);
            }
        }
        self.answer(input, output)
    }

    /// Answers input until the client does not read the answers.
    fn answer(&mut self, mut input: &[u8], output: &mut Vec<u8>) -> io::Result<Step> {
        // Requests that arrive in one read all get the time of the whole read, so that the clock is
        // read only once for all of them.
        let start = Instant::now();
        loop {
            output.clear();
            let consumed = self.session.feed(input, &self.daemon, output);
            input = &input[consumed.bytes..];
            let has_ended = self.session.has_ended();
            if !output.is_empty() {
                self.slot.establish();
            }
            let sent = self.stream.send(output)?;
            self.session.histogram(&self.daemon).add(start.elapsed(), consumed.requests);
            if sent < output.len() {
                let rest = if has_ended { Vec::new() } else { input.to_vec() };
                return Ok(Step::Blocked(output[sent..].to_vec(), rest));
            }
            if has_ended {
                return Ok(Step::End);
            }
            if input.is_empty() && !self.session.is_pending() {
                return Ok(Step::Done);
            }
        }
    }

    /// Waits until the client has read its answers. Returns whether the connection continues.
    async fn finish(&mut self, mut step: Step) -> io::Result<bool> {
        loop {
            let (output, input) = match step {
                Step::Done => return Ok(true),
                Step::End => return Ok(false),
                Step::Blocked(output, input) => (output, input),
            };
            let mut unsent = output.as_slice();
            while !unsent.is_empty() {
                let limit = self.daemon.settings.write_timeout;
                let Ok(writable) = timeout(limit, self.stream.writable()).await else {
                    self.daemon.state.counts.too_slow.add(1);
                    return Ok(false);
                };
                writable?;
                unsent = &unsent[self.stream.send(unsent)?..];
            }
            if self.session.has_ended() {
                return Ok(false);
            }
            if input.is_empty() && !self.session.is_pending() {
                return Ok(true);
            }
            step = BUFFERS.with_borrow_mut(|buffers| self.answer(&input, &mut buffers.output))?;
        }
    }
}

impl Session {
    fn feed(&mut self, input: &[u8], daemon: &Daemon, output: &mut Vec<u8>) -> Consumed {
        match self {
            Session::Lines(lines) => {
                let (state, settings) = (&daemon.state, &daemon.settings);
                daemon.with_throttle(|throttle| {
                    lines.feed(input, &LineContext { throttle, state, settings }, output)
                })
            }
            Session::Resp(resp) => resp.feed(input, daemon, output),
        }
    }

    fn histogram<'a>(&self, daemon: &'a Daemon) -> &'a Histogram {
        match self {
            Session::Lines(_) => &daemon.state.times.lines,
            Session::Resp(_) => &daemon.state.times.resp,
        }
    }

    fn has_ended(&self) -> bool {
        matches!(self, Session::Resp(resp) if resp.has_ended())
    }

    /// Whether some input is stored that can be answered.
    fn is_pending(&self) -> bool {
        matches!(self, Session::Resp(resp) if resp.is_pending())
    }
}

impl Stream {
    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, into),
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }

    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => Ok(rustix::io::read(stream, into)?),
            Stream::Tcp(stream) => Ok(rustix::io::read(stream, into)?),
        }
    }

    async fn writable(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.writable().await,
            Stream::Tcp(stream) => stream.writable().await,
        }
    }

    /// Sends without waiting. Returns how many bytes the system accepted.
    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut sent = 0;
        while sent < bytes.len() {
            let result = match self {
                Stream::Unix(stream) => stream.try_write(&bytes[sent..]),
                Stream::Tcp(stream) => stream.try_write(&bytes[sent..]),
            };
            match result {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream as Socket;
    use std::thread;
    use std::time::{Duration, Instant};

    use dthrottle::{Rule, Throttle};
    use tokio::task::{LocalSet, spawn_local};

    use super::*;
    use crate::config::Settings;
    use crate::descriptors::Limits;
    use crate::limit::Limit;

    fn daemon() -> Arc<Daemon> {
        let throttle = Throttle::builder().rule(Rule::per_second(1).burst(3)).build().unwrap();
        let settings = Settings::defaults();
        let limits = Limits::of_process(&settings).unwrap();
        Arc::new(Daemon::new(settings, limits, None, throttle).unwrap())
    }

    async fn connection(daemon: &Arc<Daemon>, server: Socket) -> Connection {
        server.set_nonblocking(true).unwrap();
        let stream = Stream::Unix(UnixStream::from_std(server).unwrap());
        let (slot, _) = Limit::new(1).enter().await;
        Connection::new(daemon, stream, Session::Lines(Lines::new(100, true)), slot)
    }

    fn block_on(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, test);
    }

    /// The runtime handles the shutdown before it has noticed the lines.
    #[test]
    fn input_that_arrived_before_the_shutdown_is_answered() {
        let daemon = daemon();
        block_on(async {
            let (mut client, server) = Socket::pair().unwrap();
            let (end, shutdown) = watch::channel(false);
            let run = spawn_local(connection(&daemon, server).await.run(shutdown));
            // The connection waits for input.
            yield_now().await;
            client.write_all(b"x\nx\nx\nx\npart").unwrap();
            end.send(true).unwrap();
            run.await.unwrap().unwrap();
            let mut out = Vec::new();
            client.read_to_end(&mut out).unwrap();
            assert_eq!(out, b"OK\nOK\nOK\nNO\n");
        });
    }

    const ENDLESS_CLIENT_TIME: Duration = Duration::from_secs(20);

    /// The server's end of a client that sends without pause, until the connection is closed.
    fn endless_client() -> Socket {
        let (mut client, server) = Socket::pair().unwrap();
        let mut reader = client.try_clone().unwrap();
        let start = Instant::now();
        thread::spawn(move || {
            let lines = b"x\n".repeat(100_000);
            while start.elapsed() < ENDLESS_CLIENT_TIME && client.write_all(&lines).is_ok() {}
            let _ = client.shutdown(std::net::Shutdown::Both);
        });
        thread::spawn(move || while reader.read(&mut [0; 65536]).unwrap_or(0) > 0 {});
        server
    }

    /// Each connection reads once before the next one has its turn.
    #[test]
    fn a_client_that_sends_without_pause_does_not_delay_others() {
        let daemon = daemon();
        let greedy = endless_client();
        let (mut client, server) = Socket::pair().unwrap();
        client.write_all(b"x\n").unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        block_on(async {
            let (_end, shutdown) = watch::channel(false);
            let run = spawn_local(connection(&daemon, greedy).await.run(shutdown.clone()));
            spawn_local(connection(&daemon, server).await.run(shutdown)).await.unwrap().unwrap();
            let reads = daemon.state.counts.lines.get() as usize / (INPUT / 2);
            assert!(reads < 20, "{reads} reads of one client before the other was answered");
            run.abort();
        });
    }

    /// The daemon closes such a connection at its timeout.
    #[test]
    fn a_client_that_sends_without_pause_does_not_delay_the_shutdown() {
        let daemon = daemon();
        let start = Instant::now();
        let server = endless_client();
        block_on(async {
            let (_end, shutdown) = watch::channel(true);
            let run = spawn_local(connection(&daemon, server).await.run(shutdown));
            let abort = run.abort_handle();
            let _ = timeout(Duration::from_millis(100), run).await;
            abort.abort();
        });
        assert!(start.elapsed() < ENDLESS_CLIENT_TIME / 2);
    }
}
