//! Listeners and workers. Every worker is a thread with a runtime of its own, and a connection
//! stays with the worker it was given to: no task moves, no wake-up crosses a core for an answer.

use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, LocalSet};
use tracing::{debug, warn};

use crate::connection::{Connection, Session, Stream};
use crate::daemon::Daemon;
use crate::limit::{Closed, Limit, Slot};
use crate::line::Lines;
use crate::resp::Resp;

/// How long connections have at the end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait when the system has no more sockets.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A connection on its way to a worker.
struct Accepted {
    socket: Socket,
    slot: Slot,
    closed: Closed,
}

enum Socket {
    Unix(std::os::unix::net::UnixStream),
    Tcp(std::net::TcpStream),
    Resp(std::net::TcpStream),
}

/// The threads that answer.
pub(crate) struct Workers {
    daemon: Arc<Daemon>,
    senders: Vec<mpsc::UnboundedSender<Accepted>>,
    threads: Vec<JoinHandle<()>>,
    next: std::cell::Cell<usize>,
}

impl Workers {
    pub(crate) fn start(
        daemon: &Arc<Daemon>,
        ending: &watch::Receiver<bool>,
    ) -> io::Result<Workers> {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let count = daemon.settings.workers.unwrap_or(cores);
        let (mut senders, mut threads) = (Vec::new(), Vec::new());
        for number in 0..count {
            let (sender, receiver) = mpsc::unbounded_channel();
            let (daemon, ending) = (Arc::clone(daemon), ending.clone());
            // Asked for here, so that a refusal of the system ends the start and not the worker.
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let work = move || LocalSet::new().block_on(&runtime, worker(daemon, receiver, ending));
            threads.push(thread::Builder::new().name(format!("worker {number}")).spawn(work)?);
            senders.push(sender);
        }
        Ok(Workers { daemon: Arc::clone(daemon), senders, threads, next: Default::default() })
    }

    /// Waits for all workers to end.
    pub(crate) fn join(self) {
        drop(self.senders);
        for thread in self.threads {
            let _ = thread.join();
        }
    }

    pub(crate) async fn accept_unix(&self, listener: UnixListener) {
        self.accept(async || {
            let (stream, _) = listener.accept().await?;
            stream.into_std().map(Socket::Unix)
        })
        .await;
    }

    pub(crate) async fn accept_tcp(&self, listener: TcpListener) {
        self.accept(async || {
            let (stream, _) = listener.accept().await?;
            stream.into_std().map(Socket::Tcp)
        })
        .await;
    }

    pub(crate) async fn accept_resp(&self, listener: TcpListener) {
        self.accept(async || {
            let (stream, _) = listener.accept().await?;
            stream.into_std().map(Socket::Resp)
        })
        .await;
    }

    /// Accepts the connections of one listener, which has a limit of its own.
    async fn accept(&self, next: impl AsyncFn() -> io::Result<Socket>) {
        let counts = &self.daemon.state.counts;
        let limit = Limit::new(self.daemon.limits.listener);
        loop {
            let socket = match next().await {
                Ok(socket) => socket,
                Err(error) => {
                    // Of a client that is gone again, or of a system without free descriptors:
                    // then those that are there come first.
                    warn!(%error, "no connection could be accepted");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                    continue;
                }
            };
            let (slot, closed) = limit.enter().await;
            counts.accepted.add(1);
            counts.connections.add(1);
            let next = self.next.get();
            self.next.set((next + 1) % self.senders.len());
            if self.senders[next].send(Accepted { socket, slot, closed }).is_err() {
                counts.connections.subtract(1);
            }
        }
    }
}

async fn worker(
    daemon: Arc<Daemon>,
    mut accepted: mpsc::UnboundedReceiver<Accepted>,
    ending: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            next = accepted.recv() => {
                let Some(next) = next else { break };
                connections.spawn_local(serve_connection(next, Arc::clone(&daemon), ending.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN_TIMEOUT, all).await.is_err() {
        warn!("some connections did not take their last answers");
    }
}

async fn serve_connection(accepted: Accepted, daemon: Arc<Daemon>, ending: watch::Receiver<bool>) {
    /// Also when the task is dropped.
    struct Open<'a>(&'a Daemon);
    impl Drop for Open<'_> {
        fn drop(&mut self) {
            self.0.state.counts.connections.subtract(1);
        }
    }
    let _open = Open(&daemon);
    let Accepted { socket, slot, closed } = accepted;
    let longest = daemon.settings.max_line;
    let opened = match socket {
        Socket::Unix(stream) => UnixStream::from_std(stream)
            .map(|stream| (Stream::Unix(stream), Session::Lines(Lines::new(longest, true)))),
        Socket::Tcp(stream) => {
            tcp(stream).map(|stream| (stream, Session::Lines(Lines::new(longest, false))))
        }
        Socket::Resp(stream) => {
            tcp(stream).map(|stream| (stream, Session::Resp(Resp::new(longest))))
        }
    };
    let (stream, session) = match opened {
        Ok(opened) => opened,
        Err(error) => return debug!(%error, "a connection ended"),
    };
    tokio::select! {
        biased;
        ended = Connection::new(&daemon, stream, session, slot).run(ending) => {
            if let Err(error) = ended {
                debug!(%error, "a connection ended");
            }
        }
        _ = closed => {
            daemon.state.counts.closed_idle.add(1);
            debug!("the listener is full: the connection that was idle longest is closed");
        }
    }
}

fn tcp(stream: std::net::TcpStream) -> io::Result<Stream> {
    stream.set_nodelay(true)?;
    TcpStream::from_std(stream).map(Stream::Tcp)
}
