//! Smockron's master: gatekeepers report the requests that they passed, and the master tells all of
//! them until when to delay a client. It binds both sockets; control is on the next port.

mod accounting;
mod zmtp;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::{debug, warn};

use crate::daemon::Daemon;
use crate::limit::{Limit, Slot};
use accounting::{Accounts, ClientDelay};
use zmtp::{Kind, Message, Peer, write_message};

/// The most unsent messages for a gatekeeper. Further ones are dropped, as in ZeroMQ.
const MAX_UNSENT: usize = 1000;
/// The maximum number of domains that a gatekeeper may subscribe to.
const MAX_TOPICS: usize = 1000;
/// The longest topic: a domain's name and a NUL.
const MAX_TOPIC_LEN: usize = 256;
/// How long a peer may take for the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after a failure to accept a connection.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A gatekeeper on the control socket.
struct Subscriber {
    topics: Vec<Vec<u8>>,
    messages: mpsc::Sender<Vec<u8>>,
}

/// The state that all connections share.
struct Master {
    daemon: Arc<Daemon>,
    accounts: Accounts,
    subscribers: RefCell<Vec<Rc<RefCell<Subscriber>>>>,
}

/// Serves both sockets until the future is dropped.
pub(crate) async fn serve(accounting: TcpListener, control: TcpListener, daemon: Arc<Daemon>) {
    let accounts = Accounts::new(Arc::clone(&daemon));
    let master = Rc::new(Master { daemon, accounts, subscribers: RefCell::default() });
    // Each socket has its own limit and loop, so peers of one cannot keep peers of the other out.
    tokio::join!(
        accept(&accounting, Kind::Subscriber, &master),
        accept(&control, Kind::Publisher, &master),
    );
}

async fn accept(listener: &TcpListener, kind: Kind, master: &Rc<Master>) {
    let limit = Limit::new(master.daemon.limits.smockron);
    let mut peers = JoinSet::new();
    loop {
        while peers.try_join_next().is_some() {}
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!(%error, "cannot accept the connection of a gatekeeper");
                tokio::time::sleep(ACCEPT_RETRY).await;
                continue;
            }
        };
        // Dropped after the stream, so that the descriptor is free when the slot is.
        let (slot, closed) = limit.enter().await;
        let master = Rc::clone(master);
        peers.spawn_local(async move {
            tokio::select! {
                biased;
                _ = closed => {
                    master.daemon.state.counts.closed_idle.add(1);
                    debug!("the listener is full: closed an idle connection of a gatekeeper");
                }
                ended = master.serve_connection(stream, kind, &slot) => {
                    if let Err(error) = ended {
                        debug!(%error, "the connection of a gatekeeper ended");
                    }
                }
            }
        });
    }
}

impl Master {
    async fn serve_connection(&self, stream: TcpStream, kind: Kind, slot: &Slot) -> io::Result<()> {
        // Otherwise the second of two small messages waits up to 40 ms for the ACK of the first.
        stream.set_nodelay(true)?;
        match kind {
            Kind::Subscriber => self.serve_accounting(stream, slot).await,
            Kind::Publisher => self.serve_control(stream, slot).await,
        }
    }

    /// Reads the accounting messages of a gatekeeper.
    async fn serve_accounting(&self, stream: TcpStream, slot: &Slot) -> io::Result<()> {
        let (mut peer, mut out) = Peer::new(Kind::Subscriber);
        let mut input = vec![0; 16 * 1024];
        let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
        loop {
            send(&stream, &mut out, &self.daemon).await?;
            let count =
                receive(&stream, &mut input, (!peer.is_connected()).then_some(deadline)).await?;
            slot.touch();
            let take = |message| match message {
                Message::Frames(frames) => {
                    slot.establish();
                    if let Some(delay) = self.accounts.take(&frames) {
                        self.publish_delay(&delay);
                    }
                }
                Message::Oversize => self.accounts.oversize(),
            };
            peer.feed(&input[..count], &mut out, take).map_err(io::Error::other)?;
        }
    }

    /// Sends a delay to every gatekeeper that has subscribed to the domain.
    fn publish_delay(&self, delay: &ClientDelay) {
        let counts = &self.daemon.state.counts;
        counts.smockron_published.add(1);
        let topic = [delay.domain, b"\0"].concat();
        let until = delay.until_ms.to_string();
        let mut message = Vec::new();
        write_message(&[&topic, b"DELAY_UNTIL", delay.identifier, until.as_bytes()], &mut message);
        for subscriber in self.subscribers.borrow().iter() {
            let subscriber = subscriber.borrow();
            if subscriber.topics.iter().any(|prefix| topic.starts_with(prefix))
                && subscriber.messages.try_send(message.clone()).is_err()
            {
                counts.smockron_dropped.add(1);
                self.accounts.warn("a gatekeeper did not read 1000 messages of the master");
            }
        }
    }

    /// Sends a gatekeeper the messages of its subscriptions.
    async fn serve_control(&self, stream: TcpStream, slot: &Slot) -> io::Result<()> {
        let (messages, mut waiting) = mpsc::channel(MAX_UNSENT);
        let subscriber = Rc::new(RefCell::new(Subscriber { topics: Vec::new(), messages }));
        self.subscribers.borrow_mut().push(Rc::clone(&subscriber));
        let _registration = Registration { master: self, subscriber: &subscriber };
        run_control(&stream, &self.daemon, &subscriber, &mut waiting, slot).await
    }
}

/// Removes a subscriber from the list when it is dropped with its task.
struct Registration<'a> {
    master: &'a Master,
    subscriber: &'a Rc<RefCell<Subscriber>>,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.master.subscribers.borrow_mut().retain(|other| !Rc::ptr_eq(other, self.subscriber));
    }
}

async fn run_control(
    stream: &TcpStream,
    daemon: &Daemon,
    subscriber: &RefCell<Subscriber>,
    waiting: &mut mpsc::Receiver<Vec<u8>>,
    slot: &Slot,
) -> io::Result<()> {
    let (mut peer, mut out) = Peer::new(Kind::Publisher);
    let mut input = vec![0; 4 * 1024];
    let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
    loop {
        send(stream, &mut out, daemon).await?;
        tokio::select! {
            Some(message) = waiting.recv() => {
                slot.touch();
                out.extend(message);
            }
            count = receive(stream, &mut input, (!peer.is_connected()).then_some(deadline)) => {
                let count = count?;
                slot.touch();
                let take = |message| {
                    if let Message::Frames(frames) = message {
                        subscribe(&frames, &mut subscriber.borrow_mut());
                    }
                };
                peer.feed(&input[..count], &mut out, take).map_err(io::Error::other)?;
                // A subscriber may be silent for hours: peers without a subscription are closed
                // first.
                if !subscriber.borrow().topics.is_empty() {
                    slot.establish();
                }
            }
        }
    }
}

fn subscribe(frames: &[Vec<u8>], subscriber: &mut Subscriber) {
    match frames.first().and_then(|frame| frame.split_first()) {
        Some((1, topic))
            if subscriber.topics.len() < MAX_TOPICS && topic.len() <= MAX_TOPIC_LEN =>
        {
            subscriber.topics.push(topic.to_vec());
        }
        Some((0, topic)) => {
            if let Some(index) = subscriber.topics.iter().position(|known| known == topic) {
                subscriber.topics.swap_remove(index);
            }
        }
        _ => {}
    }
}

/// Sends all bytes. Fails if the gatekeeper does not read for `write_timeout`, because unsent bytes
/// need memory. The gatekeeper may connect again.
async fn send(stream: &TcpStream, out: &mut Vec<u8>, daemon: &Daemon) -> io::Result<()> {
    while !out.is_empty() {
        let Ok(writable) = timeout(daemon.settings.write_timeout, stream.writable()).await else {
            daemon.state.counts.too_slow.add(1);
            return Err(io::ErrorKind::TimedOut.into());
        };
        writable?;
        match stream.try_write(out) {
            Ok(count) => drop(out.drain(..count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn receive(
    stream: &TcpStream,
    into: &mut [u8],
    deadline: Option<Instant>,
) -> io::Result<usize> {
    loop {
        match deadline {
            None => stream.readable().await?,
            Some(deadline) => timeout_at(deadline, stream.readable()).await??,
        }
        match stream.try_read(into) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
    }
}
