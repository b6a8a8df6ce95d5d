//! Listeners and workers. Every worker is a thread with its own runtime, and a connection stays
//! with its worker, so that answering does not wake up another core.

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

/// How long the shutdown waits for connections to read their last answers.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause after a failure to accept a connection.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A connection that is passed to a worker.
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

/// The threads that serve connections.
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
            // Built here, so that a failure ends the start of the daemon and not only a worker.
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let work = move || LocalSet::new().block_on(&runtime, worker(daemon, receiver, ending));
            threads.push(thread::Builder::new().name(format!("worker {number}")).spawn(work)?);
            senders.push(sender);
        }
        Ok(Workers { daemon: Arc::clone(daemon), senders, threads, next: Default::default() })
    }

    /// Waits until all workers have ended.
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

    /// Accepts the connections of one listener, which has its own limit.
    async fn accept(&self, next: impl AsyncFn() -> io::Result<Socket>) {
        let counts = &self.daemon.state.counts;
        let limit = Limit::new(self.daemon.limits.listener);
        loop {
            let socket = match next().await {
                Ok(socket) => socket,
                Err(error) => {
                    // The client has left already, or there are no free descriptors. In the second
                    // case existing connections have priority.
                    warn!(%error, "cannot accept a connection");
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
        warn!("some clients did not read their last answers within {DRAIN_TIMEOUT:?}");
    }
}

async fn serve_connection(accepted: Accepted, daemon: Arc<Daemon>, ending: watch::Receiver<bool>) {
    /// Decrements the count of open connections, even if the task is dropped.
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
            debug!("the listener is full: closed the connection that was idle longest");
        }
    }
}

fn tcp(stream: std::net::TcpStream) -> io::Result<Stream> {
    stream.set_nodelay(true)?;
    TcpStream::from_std(stream).map(Stream::Tcp)
}
