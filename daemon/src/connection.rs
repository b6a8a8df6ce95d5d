//! One connection: reads what has come, answers it, and never holds more than a bounded rest.
//!
//! Buffers belong to the thread, not to the connection: an idle connection costs a task and a
//! socket, and only one that does not read its answers holds bytes of its own.

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

/// For clients that took this port for another.
const NO_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\
    Connection: close\r\n\r\ndthrottled does not speak HTTP here; its key http says where\n";

/// A socket of either kind.
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// What is spoken on it.
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

/// What a step came to.
enum Step {
    /// Everything is answered.
    Done,
    /// The client does not read: answers, and input that has yet to be looked at.
    Blocked(Vec<u8>, Vec<u8>),
    /// The last answer is sent, or the client is gone.
    End,
}

/// A thread's buffers.
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

    /// Answers until the client goes, an error, or the end of the daemon.
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
                // The others of this thread come first: a hundred reads of whoever sends without
                // end are longer than clients wait for an answer.
                yield_now().await;
            }
        }
        // What has come by now is still answered.
        loop {
            let step = self.final_step()?;
            if !self.finish(step).await? {
                return Ok(());
            }
            // Whoever goes on sending must not keep the daemon: its time is looked at now.
            yield_now().await;
        }
    }

    /// Reads and answers what the system has; nothing is waited for. The runtime is not asked
    /// whether there is something: it may not have heard of it yet.
    fn final_step(&mut self) -> io::Result<Step> {
        BUFFERS.with_borrow_mut(|Buffers { input, output }| match self.stream.receive(input) {
            Ok(0) => Ok(Step::End),
            Ok(count) => self.process(&input[..count], output),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Step::End),
            Err(error) => Err(error),
        })
    }

    /// Reads once and answers. Nothing waits in between, so the thread's buffers are free.
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

    /// Answers what was read, unless it is of another protocol.
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

    /// Answers input as far as the client takes the answers.
    fn answer(&mut self, mut input: &[u8], output: &mut Vec<u8>) -> io::Result<Step> {
        // Requests that came together have the time of all: the clock is read once for them.
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

    /// Waits until the client has read what it was told. Whether the connection goes on.
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

    /// Whether there is something to answer without further input.
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

    /// Sends what the system takes at once.
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

    /// The runtime hears of the end, but has not looked at the socket since the lines came.
    #[test]
    fn what_has_come_is_answered_at_the_end() {
        let daemon = daemon();
        block_on(async {
            let (mut client, server) = Socket::pair().unwrap();
            let (end, shutdown) = watch::channel(false);
            let run = spawn_local(connection(&daemon, server).await.run(shutdown));
            // It waits for something to read.
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

    /// The other end of a client that sends for so long, unless it is let go.
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

    /// Who sends without end is read from once before the next one's turn.
    #[test]
    fn everybody_has_a_turn() {
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
            assert!(reads < 20, "{reads} reads before that of another");
            run.abort();
        });
    }

    /// Who never ceases to send is let go when the time is over, not when it likes.
    #[test]
    fn nobody_delays_the_end() {
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
