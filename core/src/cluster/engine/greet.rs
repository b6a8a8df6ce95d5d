//! Greetings: a peer is believed once it has answered a number that nobody could have recorded.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use rand::RngExt;

use super::{Engine, To};
use crate::cluster::members::Identity;
use crate::cluster::pace;
use crate::cluster::peer::{Peer, State};
use crate::cluster::replay::Replay;
use crate::cluster::window::LAST_NUMBER;
use crate::cluster::wire::{Dropped, Envelope, Hello, Kind};
use crate::cluster::{Event, Origin, Window};

/// The most challenges that wait for an answer.
const MOST_CHALLENGES: usize = 4096;

/// Numbers that show, when they come back, that a peer is there.
#[derive(Default)]
pub(super) struct Challenges {
    at: BTreeMap<u64, u64>,
    order: VecDeque<(u64, u64)>,
}

impl Challenges {
    fn add(&mut self, now: u64, challenge: u64) {
        while let Some((at, oldest)) = self.order.front()
            && (self.order.len() >= MOST_CHALLENGES || now >= at + pace::CHALLENGE)
        {
            self.at.remove(oldest);
            self.order.pop_front();
        }
        self.at.insert(challenge, now);
        self.order.push_back((now, challenge));
    }

    /// When it was made, if that is not too long ago.
    fn get(&self, now: u64, challenge: u64) -> Option<u64> {
        self.at.get(&challenge).copied().filter(|at| now < at + pace::CHALLENGE)
    }
}

/// Where a peer is reached that says where it is: who takes itself for being on this machine, and is
/// not, does not know.
fn reachable(address: SocketAddr, from: SocketAddr) -> SocketAddr {
    let is_wrong =
        address.ip().is_unspecified() || address.ip().is_loopback() && !from.ip().is_loopback();
    if is_wrong { from } else { address }
}

impl Engine {
    /// Asks whoever is there to answer.
    pub(super) fn greet(&mut self, now: u64, to: To) {
        let challenge = self.new_challenge(now);
        self.say_hello(now, to, challenge, 0);
    }

    /// Asks a sender to show that it is there, but not for every datagram of it.
    pub(super) fn challenge(&mut self, now: u64, at: SocketAddr, origin: Origin) {
        if !self.has_room_for(origin) {
            return;
        }
        let peer = self.peer(now, origin);
        let lately = |at: u64| now < at + pace::CHALLENGE_AGAIN;
        if peer.challenged_at.is_some_and(lately) {
            return;
        }
        peer.challenged_at = Some(now);
        self.greet(now, To::One(at));
    }

    fn new_challenge(&mut self, now: u64) -> u64 {
        let challenge = self.rng.random_range(1..=u64::MAX);
        self.challenges.add(now, challenge);
        challenge
    }

    fn say_hello(&mut self, now: u64, to: To, challenge: u64, echo: u64) {
        let (slack_us, slack_age_us) = self.slack.announced(now);
        let hello = Hello {
            challenge,
            echo,
            top: self.outbox.top,
            rules: self.outbox.rules_hash,
            address: self.settings.address,
            slack_us,
            slack_age_us,
        };
        let mut body = Vec::new();
        hello.write(&mut body);
        self.send(to, Kind::Hello, 0, &body);
    }

    pub(super) fn handle_hello(
        &mut self,
        now: u64,
        from: SocketAddr,
        envelope: &Envelope,
        body: &[u8],
    ) -> Result<(), Dropped> {
        let hello = Hello::parse(body)?;
        let sender = envelope.sender;
        if !self.has_room_for(sender) {
            return Ok(());
        }
        if let Some(at) = self.challenges.get(now, hello.echo) {
            let address = reachable(hello.address, from);
            self.prove(now, envelope, &Hello { address, ..hello }, now.saturating_sub(at));
        }
        let proven = self.peers.get(&sender).is_some_and(Peer::is_proven);
        // A recording could hold any value, so only a proven sender is believed.
        let peer = self.peers.get(&sender).filter(|peer| peer.is_proven());
        if let Some(delay) = peer.map(|peer| peer.delay.unwrap_or(0))
            && self.slack.heard(now, hello.slack_us, hello.slack_age_us, delay)
        {
            self.publish_slack(now);
        }
        if hello.challenge == 0 {
            return Ok(());
        }
        if proven {
            self.say_hello(now, To::One(from), 0, hello.challenge);
            return Ok(());
        }
        // It may be a recording, sent from anywhere: not every one is answered.
        let peer = self.peer(now, sender);
        if peer.answered_at.is_none_or(|at| now >= at + pace::ANSWER_AGAIN) {
            peer.answered_at = Some(now);
            let challenge = self.new_challenge(now);
            self.say_hello(now, To::One(from), challenge, hello.challenge);
        }
        Ok(())
    }

    /// A sender has shown that it is there.
    fn prove(&mut self, now: u64, envelope: &Envelope, hello: &Hello, round_trip: u64) {
        let sender = envelope.sender;
        let rules_differ = hello.rules != self.outbox.rules_hash;
        let peer = self.peer(now, sender);
        peer.heard_at = now;
        peer.saw_round_trip(round_trip);
        peer.address = Some(hello.address);
        peer.rules = hello.rules;
        peer.changed = true;
        if peer.is_proven() {
            if !matches!(peer.state, State::Up | State::Left) {
                self.members.announce(now, Identity::new(hello.address, sender));
            }
            self.hear_of(now, sender, hello.top);
            return;
        }
        // Whatever it sent before may come from a recording; if not, it can be repaired.
        peer.replay = Some(Replay::after(envelope.packet));
        let is_member = peer.state == State::Up;
        self.seat(sender);
        self.doubt(sender, hello.top);
        self.supersede(now, sender, hello.address);
        if rules_differ {
            self.happened(now, Event::RulesDiffer(sender));
        }
        if !is_member {
            self.members.announce(now, Identity::new(hello.address, sender));
        }
        self.hear_of(now, sender, hello.top);
        if !rules_differ {
            self.ask_for_snapshot(now, sender);
        }
    }

    /// Without a seat nobody knows what the process before has applied. Better to miss some of it
    /// than to charge it twice.
    fn doubt(&mut self, origin: Origin, top: u64) {
        let is_resumed = self.is_resumed;
        let Some(peer) = self.peers.get_mut(&origin) else { return };
        if is_resumed && peer.seat.is_none() && peer.window.top() == 0 && top <= LAST_NUMBER {
            peer.window = Window::new(top, Vec::new());
        }
    }

    /// What lived at this address, or under this name, before is there no more.
    fn supersede(&mut self, now: u64, newer: Origin, address: SocketAddr) {
        let older: Vec<Origin> = self
            .peers
            .iter()
            .filter(|(origin, peer)| {
                let same = origin.node == newer.node || peer.address == Some(address);
                same && origin.incarnation < newer.incarnation && peer.state != State::Left
            })
            .map(|(origin, _)| *origin)
            .collect();
        for origin in older {
            match self.peers.get_mut(&origin) {
                // It is known to be dead; that it did not even say goodbye is no news.
                Some(peer) if peer.state != State::Up => peer.state = State::Left,
                _ => self.set_state(now, origin, State::Left),
            }
            self.told_changed = true;
        }
    }

    /// Gives a peer a place in the table, so that another process could go on with it.
    pub(super) fn seat(&mut self, origin: Origin) {
        let Some(peer) = self.peers.get_mut(&origin) else { return };
        if peer.seat.is_none() {
            peer.seat = self.exchange.take_seat(origin);
            if let Some(seat) = peer.seat {
                self.exchange.set_window(seat, &peer.window);
            }
        }
    }
}
