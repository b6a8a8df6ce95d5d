//! The engine: datagrams and time go in, datagrams come out, and the table is charged.
//!
//! It touches no clock, socket, thread or source of randomness: whoever runs it gives it all of
//! that. After every call, `poll` until it says `Timeout`.

mod busy;
mod greet;
mod repair;
mod report;
mod round;
mod snapshot;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use self::busy::BusyOutbox;
use self::greet::Challenges;
use self::report::Outbox;
use self::snapshot::Start;
use super::counter::Counter;
use super::history::History;
use super::members::{Change, Identity, Members};
use super::pace::{self, TICK};
use super::peer::{Peer, State};
use super::settings::Settings;
use super::slack::Slack;
use super::wire::{Envelope, Kind};
use super::{Event, Origin};
use crate::cluster::access::Exchange;

/// The most origins that are known at a time.
const MOST_PEERS: usize = 4096;

/// What is to be done next.
#[derive(Debug)]
pub enum Output {
    /// Send this.
    Transmit(Transmit),
    /// Something happened that people may want to know.
    Event(Event),
    /// Nothing, until this time or the next datagram.
    Timeout(u64),
}

/// A datagram to send.
#[derive(Debug)]
pub struct Transmit {
    /// To whom.
    pub to: To,
    /// At most `MAX_DATAGRAM` of them.
    pub bytes: Vec<u8>,
}

/// Where a datagram goes.
#[derive(Clone, Debug)]
pub enum To {
    /// To one address.
    One(SocketAddr),
    /// To each of these.
    Each(Arc<[SocketAddr]>),
    /// To the multicast group.
    Group,
}

/// One node's exchange. Times are nanoseconds on the table's clock.
pub struct Engine {
    settings: Settings,
    exchange: Exchange,
    me: Origin,
    rng: SmallRng,
    /// The number of the last datagram.
    packet: u64,
    members: Members,
    peers: BTreeMap<Origin, Peer>,
    /// Those of them that something is missing of.
    asking: BTreeSet<Origin>,
    /// Where reports go.
    told: Arc<[SocketAddr]>,
    told_changed: bool,
    /// Addresses that are tried until somebody is there.
    tried: Vec<SocketAddr>,
    /// Where peers were when another process exchanged.
    met: Vec<SocketAddr>,
    challenges: Challenges,
    slack: Slack,
    /// Another process exchanged before, and may have applied reports of peers without a seat.
    is_resumed: bool,
    /// When rules of other processes were last looked for.
    learned_at: u64,
    history: History,
    outbox: Outbox,
    busy: BusyOutbox,
    start: Start,
    /// The last snapshot that was given, and when.
    snapshot: Option<Arc<[Vec<u8>]>>,
    snapshot_at: u64,
    tick_at: u64,
    round_at: u64,
    sweep_at: u64,
    outputs: VecDeque<Output>,
    /// Said goodbye: hears and says nothing any more.
    is_gone: bool,
    /// What was applied, if somebody keeps the books.
    ledger: Option<Vec<(Origin, u64, u64)>>,
}

impl Engine {
    /// An engine at work on a table. `seed` must differ from life to life, and `incarnation` must
    /// be greater than that of the node's earlier lives.
    pub fn new(
        settings: Settings,
        exchange: Exchange,
        seed: u64,
        incarnation: u64,
        now: u64,
    ) -> Engine {
        let mut rng = SmallRng::seed_from_u64(seed);
        let node = exchange.node_id(rng.random_range(1..=u64::MAX));
        let me = Origin { node, incarnation };
        let identity = Identity::new(settings.address, me);
        let members = Members::new(identity, SmallRng::seed_from_u64(rng.random()));
        let outbox = Outbox::new(&exchange, &settings, now, &mut rng);
        let idle = exchange.idle_for(now);
        exchange.stay(now);
        let mut engine = Engine {
            me,
            members,
            outbox,
            peers: BTreeMap::new(),
            asking: BTreeSet::new(),
            told: Arc::new([]),
            told_changed: false,
            tried: Vec::new(),
            met: Vec::new(),
            challenges: Challenges::default(),
            slack: Slack::default(),
            is_resumed: false,
            learned_at: now,
            history: History::new(settings.retention_bytes),
            packet: 0,
            busy: BusyOutbox::default(),
            start: Start::Ready,
            snapshot: None,
            snapshot_at: now,
            tick_at: now + rng.random_range(1..=TICK),
            round_at: now + rng.random_range(1..=pace::ROUND),
            sweep_at: now + pace::SWEEP,
            outputs: VecDeque::new(),
            is_gone: false,
            ledger: None,
            settings,
            exchange,
            rng,
        };
        engine.resume(now, idle);
        engine
    }

    /// This node, in this life.
    pub fn origin(&self) -> Origin {
        self.me
    }

    /// How many peers are there.
    pub fn peers(&self) -> usize {
        self.members.len()
    }

    /// How many origins are known, whatever became of them.
    pub fn origins(&self) -> usize {
        self.peers.len()
    }

    /// Starts to keep the books: which reports were applied.
    pub fn keep_ledger(&mut self) {
        self.ledger = Some(Vec::new());
    }

    /// The reports applied since the last call: origin, first and last number.
    pub fn applied(&mut self) -> Vec<(Origin, u64, u64)> {
        self.ledger.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes over where another process with the same table left off: what it applied is not
    /// applied again.
    fn resume(&mut self, now: u64, idle: Option<u64>) {
        let seats: Vec<(usize, Origin)> = self.exchange.seats().collect();
        for (seat, origin) in &seats {
            let window = self.exchange.window(*seat);
            let address = self.exchange.facts(*seat).address;
            let peer =
                Peer { seat: Some(*seat), window, address, heard_at: now, ..Peer::default() };
            self.peers.insert(*origin, peer);
            self.note_missing(*origin);
        }
        self.is_resumed = !seats.is_empty();
        // What was missed meanwhile cannot all be repaired: others know it as a whole.
        if seats.is_empty() || idle.is_none_or(|idle| idle > self.retention()) {
            self.start = Start::waiting(now);
        }
        self.met.extend(self.peers.values().filter_map(|peer| peer.address));
    }

    /// Says where peers reach this node, if that became known only now.
    pub fn set_address(&mut self, address: SocketAddr) {
        if address != self.settings.address {
            self.settings.address = address;
            let identity = Identity::new(address, self.me);
            self.members = Members::new(identity, SmallRng::seed_from_u64(self.rng.random()));
            // They know somebody at the old address: they have to be met anew.
            for peer in self.peers.values_mut().filter(|peer| peer.state == State::Up) {
                peer.state = State::Known;
                self.told_changed = true;
            }
        }
    }

    /// Addresses at which there may be peers.
    pub fn join(&mut self, now: u64, addresses: &[SocketAddr]) {
        let new = addresses.iter().filter(|address| !self.tried.contains(address)).copied();
        let new: BTreeSet<SocketAddr> = new.chain(std::mem::take(&mut self.met)).collect();
        if self.tried.is_empty() && !addresses.is_empty() {
            self.start.begin(now);
        }
        self.tried = addresses.to_vec();
        let own = self.settings.address;
        let new = new.into_iter().filter(|address| *address != own);
        new.for_each(|address| self.greet(now, To::One(address)));
        if self.settings.multicast {
            self.greet(now, To::Group);
        }
    }

    /// Says goodbye. What has not been reported yet is.
    pub fn leave(&mut self, now: u64) {
        self.report(now, true);
        self.tell_busy(now, true);
        let told = To::Each(Arc::clone(&self.told));
        self.send(told, Kind::Leave, 0, &[]);
        self.members.leave(now);
        self.settle(now);
        self.is_gone = true;
    }

    /// Takes a datagram, which is decrypted in place.
    pub fn handle_datagram(&mut self, now: u64, from: SocketAddr, datagram: &mut [u8]) {
        if self.is_gone {
            return;
        }
        self.count(Counter::DatagramsReceived, 1);
        self.count(Counter::BytesReceived, datagram.len() as u64);
        let (envelope, body) = match self.settings.keys.open(datagram) {
            Ok(opened) => opened,
            Err(cause) => return self.exchange.count(Counter::dropped(cause), 1),
        };
        if envelope.sender.node == self.me.node {
            return self.count(Counter::DroppedOwn, 1);
        }
        if self.is_welcome(now, from, &envelope) {
            self.handle_message(now, from, &envelope, body);
        }
        self.settle(now);
    }

    /// Whether a sender is there, and the datagram is not an old one. Only a greeting is taken
    /// from just anybody.
    fn is_welcome(&mut self, now: u64, from: SocketAddr, envelope: &Envelope) -> bool {
        let peer = self.peers.get_mut(&envelope.sender);
        let Some(replay) = peer.and_then(|peer| peer.replay.as_mut()) else {
            if envelope.kind != Kind::Hello {
                self.count(Counter::DroppedUnproven, 1);
                self.challenge(now, from, envelope.sender);
            }
            return envelope.kind == Kind::Hello;
        };
        if !replay.is_new(envelope.packet) && self.settings.controls.dedupe {
            self.count(Counter::DroppedReplay, 1);
            return false;
        }
        true
    }

    fn handle_message(&mut self, now: u64, from: SocketAddr, envelope: &Envelope, body: &[u8]) {
        let sender = envelope.sender;
        if let Some(peer) = self.peers.get_mut(&sender) {
            peer.heard_at = now;
        }
        let done = match envelope.kind {
            Kind::Hello => self.handle_hello(now, from, envelope, body),
            Kind::Report => self.handle_report(now, sender, envelope.flags, body),
            Kind::Gap => self.handle_gap(now, from, body),
            Kind::Gone => self.handle_gone(now, sender, body),
            Kind::Digest => self.handle_digest(now, sender, from, envelope.flags, body),
            Kind::SnapshotRequest => self.handle_snapshot_request(now, from),
            Kind::Snapshot => self.handle_snapshot(now, sender, body),
            Kind::Swim => match self.members.handle(now, body) {
                true => Ok(()),
                false => Err(super::wire::Dropped::Malformed),
            },
            Kind::Busy => self.handle_busy(now, sender, body),
            Kind::Leave => {
                self.set_state(now, sender, State::Left);
                Ok(())
            }
        };
        if let Err(cause) = done {
            self.exchange.count(Counter::dropped(cause), 1);
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: u64) {
        if self.is_gone {
            return;
        }
        if now >= self.tick_at {
            self.exchange.stay(now);
            self.go_on_with_start(now);
            self.report(now, false);
            self.tell_busy(now, false);
            self.tell_tail(now);
            self.ask_for_missing(now);
            // Never in step with others.
            self.tick_at = now + self.rng.random_range(TICK * 8 / 10..=TICK);
        }
        if now >= self.round_at {
            self.round(now);
            self.round_at = now + self.jittered(pace::ROUND);
        }
        self.members.handle_timeout(now);
        self.settle(now);
    }

    /// What to do next.
    pub fn poll(&mut self) -> Output {
        self.outputs.pop_front().unwrap_or_else(|| {
            if self.is_gone {
                return Output::Timeout(u64::MAX);
            }
            let first = self.tick_at.min(self.round_at);
            Output::Timeout(self.members.next_timeout().map_or(first, |at| first.min(at)))
        })
    }

    /// Carries out what membership asked for.
    fn settle(&mut self, now: u64) {
        while let Some(change) = self.members.next_change() {
            match change {
                Change::Up(identity) => {
                    let origin = identity.origin();
                    // This node where it was before, or more than anybody has.
                    if origin.node == self.me.node || !self.has_room_for(origin) {
                        continue;
                    }
                    self.peer(now, origin).address = Some(identity.address);
                    self.set_state(now, origin, State::Up);
                    if !self.peers[&origin].is_proven() {
                        self.challenge(now, identity.address, origin);
                    }
                }
                Change::Down(identity) => {
                    let origin = identity.origin();
                    let at = self.peers.get(&origin).and_then(|peer| peer.address);
                    // Else it has moved.
                    if at == Some(identity.address) {
                        self.set_state(now, origin, State::Down(now));
                    }
                }
            }
        }
        if self.told_changed {
            self.told_changed = false;
            self.update_told(now);
        }
        while let Some((to, data)) = self.members.next_send() {
            self.send(To::One(to), Kind::Swim, 0, &data);
        }
    }

    fn set_state(&mut self, now: u64, origin: Origin, state: State) {
        let peer = self.peer(now, origin);
        let before = peer.state;
        if matches!((before, state), (State::Left, State::Down(_))) {
            return;
        }
        peer.state = state;
        peer.changed = true;
        let event = match (before, state) {
            (State::Up, State::Up) => return,
            (_, State::Up) => {
                self.count(Counter::PeersUp, 1);
                Event::PeerUp(origin)
            }
            (State::Up, State::Left) => {
                self.count(Counter::PeersDown, 1);
                Event::PeerLeft(origin)
            }
            // Others said so first.
            (State::Down(_), State::Left) => Event::PeerLeft(origin),
            (State::Up, State::Down(_)) => {
                self.count(Counter::PeersDown, 1);
                Event::PeerDown(origin)
            }
            _ => return,
        };
        self.told_changed = true;
        self.happened(now, event);
    }

    /// Who gets reports: an address once, whatever lives there.
    fn update_told(&mut self, now: u64) {
        let retention = self.retention();
        let told = self.peers.values().filter(|peer| peer.is_told(now, retention));
        let told: BTreeSet<SocketAddr> = told.filter_map(|peer| peer.address).collect();
        let told = told.into_iter().filter(|address| *address != self.settings.address);
        self.told = told.collect();
        self.outbox.nodes = self.members.len() as u64 + 1;
        self.publish_slack(now);
    }

    /// Whether there is room for an origin, or has been: whoever has the key may name any number.
    fn has_room_for(&self, origin: Origin) -> bool {
        self.peers.len() < MOST_PEERS || self.peers.contains_key(&origin)
    }

    /// What is known of a peer, which may be nothing yet.
    fn peer(&mut self, now: u64, origin: Origin) -> &mut Peer {
        self.peers.entry(origin).or_insert_with(|| Peer { heard_at: now, ..Peer::default() })
    }

    fn everybody(&self) -> To {
        match self.settings.multicast {
            true => To::Group,
            false => To::Each(Arc::clone(&self.told)),
        }
    }

    /// Whether anybody would hear what is told to everybody.
    fn is_heard(&self) -> bool {
        self.settings.multicast || !self.told.is_empty()
    }

    fn send(&mut self, to: To, kind: Kind, flags: u8, body: &[u8]) {
        let receivers = match &to {
            To::Each(addresses) => addresses.len() as u64,
            To::One(_) | To::Group => 1,
        };
        self.packet += 1;
        if receivers == 0 {
            return;
        }
        let mut bytes = Vec::new();
        let envelope = Envelope { kind, flags, sender: self.me, packet: self.packet };
        self.settings.keys.seal(&envelope, body, &mut bytes);
        self.count(Counter::DatagramsSent, receivers);
        self.count(Counter::BytesSent, receivers * bytes.len() as u64);
        self.outputs.push_back(Output::Transmit(Transmit { to, bytes }));
    }

    fn happened(&mut self, now: u64, event: Event) {
        self.exchange.note(event.raw(now));
        self.outputs.push_back(Output::Event(event));
    }

    fn count(&self, counter: Counter, by: u64) {
        self.exchange.count(counter.place(), by);
    }

    fn retention(&self) -> u64 {
        u64::try_from(self.settings.retention.as_nanos()).unwrap_or(u64::MAX)
    }

    /// A fifth more or less: timers of nodes must never align.
    fn jittered(&mut self, time: u64) -> u64 {
        self.rng.random_range(time * 8 / 10..=time * 12 / 10)
    }
}
