//! Smockron's master: gatekeepers report the requests that they let through, and the master tells
//! all of them until when to delay a client. It binds both sockets; control is on the next port.

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
use accounting::{Accounts, DelayUntil};
use zmtp::{Kind, Message, Peer, write_message};

/// Messages that wait for a gatekeeper; more are dropped, as ZeroMQ does.
const MOST_WAITING: usize = 1000;
/// Domains that a gatekeeper may subscribe to.
const MOST_TOPICS: usize = 1000;
/// A domain's name and its NUL; what is longer is no beginning of that.
const LONGEST_TOPIC: usize = 256;
/// How long a peer may take to say what it is.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long to wait when the system has no more sockets.
const NO_SOCKETS: Duration = Duration::from_millis(100);

/// A gatekeeper that listens.
struct Listener {
    topics: Vec<Vec<u8>>,
    messages: mpsc::Sender<Vec<u8>>,
}

/// The state that all connections share.
struct Master {
    daemon: Arc<Daemon>,
    accounts: Accounts,
    listeners: RefCell<Vec<Rc<RefCell<Listener>>>>,
}

/// Answers on both sockets until it is dropped.
pub(crate) async fn serve(accounting: TcpListener, control: TcpListener, daemon: Arc<Daemon>) {
    let accounts = Accounts::new(Arc::clone(&daemon));
    let master = Rc::new(Master { daemon, accounts, listeners: RefCell::default() });
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
                warn!(%error, "no connection of a gatekeeper could be accepted");
                tokio::time::sleep(NO_SOCKETS).await;
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
                    debug!("the listener is full: a gatekeeper's idle connection is closed");
                }
                ended = master.talk(stream, kind, &slot) => {
                    if let Err(error) = ended {
                        debug!(%error, "a gatekeeper is gone");
                    }
                }
            }
        });
    }
}

impl Master {
    async fn talk(&self, stream: TcpStream, kind: Kind, slot: &Slot) -> io::Result<()> {
        // Otherwise the second of two small messages waits for the ACK of the first: 40 ms.
        stream.set_nodelay(true)?;
        match kind {
            Kind::Subscriber => self.account(stream, slot).await,
            Kind::Publisher => self.publish(stream, slot).await,
        }
    }

    /// Reads the accounting messages of a gatekeeper.
    async fn account(&self, stream: TcpStream, slot: &Slot) -> io::Result<()> {
        let (mut peer, mut out) = Peer::new(Kind::Subscriber);
        let mut input = vec![0; 16 * 1024];
        let deadline = Instant::now() + HANDSHAKE;
        loop {
            send(&stream, &mut out, &self.daemon).await?;
            let count = receive(&stream, &mut input, (!peer.is_met()).then_some(deadline)).await?;
            slot.touch();
            let take = |message| match message {
                Message::Frames(frames) => {
                    slot.establish();
                    if let Some(delay) = self.accounts.take(&frames) {
                        self.tell(&delay);
                    }
                }
                Message::Oversize => self.accounts.oversize(),
            };
            peer.feed(&input[..count], &mut out, take).map_err(io::Error::other)?;
        }
    }

    /// Tells every gatekeeper of the domain until when to delay a client.
    fn tell(&self, delay: &DelayUntil) {
        let counts = &self.daemon.state.counts;
        counts.smockron_published.add(1);
        let topic = [delay.domain, b"\0"].concat();
        let until = delay.until_ms.to_string();
        let mut message = Vec::new();
        write_message(&[&topic, b"DELAY_UNTIL", delay.identifier, until.as_bytes()], &mut message);
        for listener in self.listeners.borrow().iter() {
            let listener = listener.borrow();
            if listener.topics.iter().any(|prefix| topic.starts_with(prefix))
                && listener.messages.try_send(message.clone()).is_err()
            {
                counts.smockron_dropped.add(1);
                self.accounts.warn("a gatekeeper did not read 1000 messages of the master");
            }
        }
    }

    /// Sends a gatekeeper the messages that it has subscribed to.
    async fn publish(&self, stream: TcpStream, slot: &Slot) -> io::Result<()> {
        let (messages, mut waiting) = mpsc::channel(MOST_WAITING);
        let listener = Rc::new(RefCell::new(Listener { topics: Vec::new(), messages }));
        self.listeners.borrow_mut().push(Rc::clone(&listener));
        let _listed = Listed { master: self, listener: &listener };
        publish_to(&stream, &self.daemon, &listener, &mut waiting, slot).await
    }
}

/// Removes a listener from the list, also when its task is dropped.
struct Listed<'a> {
    master: &'a Master,
    listener: &'a Rc<RefCell<Listener>>,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.master.listeners.borrow_mut().retain(|other| !Rc::ptr_eq(other, self.listener));
    }
}

async fn publish_to(
    stream: &TcpStream,
    daemon: &Daemon,
    listener: &RefCell<Listener>,
    waiting: &mut mpsc::Receiver<Vec<u8>>,
    slot: &Slot,
) -> io::Result<()> {
    let (mut peer, mut out) = Peer::new(Kind::Publisher);
    let mut input = vec![0; 4 * 1024];
    let deadline = Instant::now() + HANDSHAKE;
    loop {
        send(stream, &mut out, daemon).await?;
        tokio::select! {
            Some(message) = waiting.recv() => {
                slot.touch();
                out.extend(message);
            }
            count = receive(stream, &mut input, (!peer.is_met()).then_some(deadline)) => {
                let count = count?;
                slot.touch();
                let take = |message| {
                    if let Message::Frames(frames) = message {
                        subscribe(&frames, &mut listener.borrow_mut());
                    }
                };
                peer.feed(&input[..count], &mut out, take).map_err(io::Error::other)?;
                // A subscriber may be silent for hours: peers without a subscription are closed first.
                if !listener.borrow().topics.is_empty() {
                    slot.establish();
                }
            }
        }
    }
}

fn subscribe(frames: &[Vec<u8>], listener: &mut Listener) {
    match frames.first().and_then(|frame| frame.split_first()) {
        Some((1, topic)) if listener.topics.len() < MOST_TOPICS && topic.len() <= LONGEST_TOPIC => {
            listener.topics.push(topic.to_vec());
        }
        Some((0, topic)) => {
            if let Some(place) = listener.topics.iter().position(|known| known == topic) {
                listener.topics.swap_remove(place);
            }
        }
        _ => {}
    }
}

/// One that does not read is let go, and may come back: what waits for it takes room.
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
