//! Who belongs to the cluster: candidate addresses, membership by SWIM, and what follows from a
//! peer's change of state.

use std::collections::BTreeSet;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::Engine;
use super::context::Context;
use super::greet::Challenges;
use super::peers::Peers;
use crate::cluster::counter::Counter;
use crate::cluster::members::{Identity, Members, MembershipChange};
use crate::cluster::peer::PeerState;
use crate::cluster::wire::{DatagramKind, DropCause};
use crate::cluster::{Event, Origin, PeerAddr, To};

pub(super) struct Membership {
    swim: Members,
    /// Addresses to greet until a peer is there.
    candidates: Vec<PeerAddr>,
    /// Where peers were when another process ran the exchange.
    remembered: Vec<PeerAddr>,
    pub(super) challenges: Challenges,
    /// Whether the receivers of reports have to be determined again.
    pub(super) receivers_changed: bool,
}

impl Membership {
    pub(super) fn new(context: &mut Context, peers: &Peers) -> Membership {
        let identity = Identity::new(context.settings.address, context.origin);
        Membership {
            swim: Members::new(identity, SmallRng::seed_from_u64(context.rng.random())),
            candidates: Vec::new(),
            remembered: peers.iter().filter_map(|(_, peer)| peer.address).collect(),
            challenges: Challenges::default(),
            receivers_changed: false,
        }
    }

    /// Starts without members, under another identity.
    pub(super) fn restart(&mut self, identity: Identity, rng: &mut SmallRng) {
        self.swim = Members::new(identity, SmallRng::seed_from_u64(rng.random()));
    }

    /// The number of other members.
    pub(super) fn len(&self) -> usize {
        self.swim.len()
    }

    pub(super) fn has_candidates(&self) -> bool {
        !self.candidates.is_empty()
    }

    /// Replaces the candidates, and returns those to greet now.
    pub(super) fn set_candidates(&mut self, addresses: &[PeerAddr]) -> BTreeSet<PeerAddr> {
        let new = addresses.iter().filter(|address| !self.candidates.contains(address)).copied();
        let new = new.chain(std::mem::take(&mut self.remembered)).collect();
        self.candidates = addresses.to_vec();
        new
    }

    /// The candidates at which no member is.
    pub(super) fn missing_candidates(&self, own: PeerAddr, peers: &Peers) -> Vec<PeerAddr> {
        let up: BTreeSet<PeerAddr> = peers.up().filter_map(|peer| peer.address).collect();
        let candidates = self.candidates.iter().copied();
        candidates.filter(|at| *at != own && !up.contains(at)).collect()
    }

    /// Tells a peer that this node is there.
    pub(super) fn announce(&mut self, now: u64, to: Identity) {
        self.swim.announce(now, to);
    }

    pub(super) fn handle(&mut self, now: u64, body: &[u8]) -> Result<(), DropCause> {
        if self.swim.handle(now, body) { Ok(()) } else { Err(DropCause::Malformed) }
    }

    pub(super) fn handle_timeout(&mut self, now: u64) {
        self.swim.handle_timeout(now);
    }

    pub(super) fn next_timeout(&self) -> Option<u64> {
        self.swim.next_timeout()
    }

    pub(super) fn leave(&mut self, now: u64) {
        self.swim.leave(now);
    }
}

impl Engine {
    /// Applies changes of membership, and sends its datagrams.
    pub(super) fn apply_membership(&mut self, now: u64) {
        while let Some(change) = self.membership.swim.next_change() {
            match change {
                MembershipChange::Up(identity) => self.handle_up(now, &identity),
                MembershipChange::Down(identity) => {
                    let origin = identity.origin();
                    let address = self.peers.get(origin).and_then(|peer| peer.address);
                    // Otherwise the peer has moved.
                    if address == Some(identity.address) {
                        self.set_state(now, origin, PeerState::Down(now));
                    }
                }
            }
        }
        if self.membership.receivers_changed {
            self.membership.receivers_changed = false;
            self.update_receivers(now);
        }
        while let Some((to, data)) = self.membership.swim.next_send() {
            self.context.send(To::One(to), DatagramKind::Swim, 0, &data);
        }
    }

    fn handle_up(&mut self, now: u64, identity: &Identity) {
        let origin = identity.origin();
        // This node at an earlier address, or more peers than a node knows.
        if origin.node == self.context.origin.node || !self.peers.has_room_for(origin) {
            return;
        }
        self.peers.entry(now, origin).address = Some(identity.address);
        self.set_state(now, origin, PeerState::Up);
        if !self.peers.is_proven(origin) {
            self.challenge(now, identity.address, origin);
        }
    }

    /// Changes a peer's state, and reports the change as an event.
    pub(super) fn set_state(&mut self, now: u64, origin: Origin, state: PeerState) {
        let peer = self.peers.entry(now, origin);
        let before = peer.state;
        if matches!((before, state), (PeerState::Left, PeerState::Down(_))) {
            return;
        }
        peer.state = state;
        peer.changed = true;
        let (counter, event) = match (before, state) {
            (PeerState::Up, PeerState::Up) => return,
            (_, PeerState::Up) => (Some(Counter::PeersUp), Event::PeerUp(origin)),
            (PeerState::Up, PeerState::Left) => (Some(Counter::PeersDown), Event::PeerLeft(origin)),
            // It was counted when it went down.
            (PeerState::Down(_), PeerState::Left) => (None, Event::PeerLeft(origin)),
            (PeerState::Up, PeerState::Down(_)) => {
                (Some(Counter::PeersDown), Event::PeerDown(origin))
            }
            _ => return,
        };
        if let Some(counter) = counter {
            self.context.count(counter, 1);
        }
        self.membership.receivers_changed = true;
        self.context.emit(now, event);
    }

    /// Determines who receives reports: each address once, whatever runs there.
    pub(super) fn update_receivers(&mut self, now: u64) {
        let (own, retention) = (self.context.settings.address, self.context.retention());
        let receivers = self.peers.iter().filter(|(_, peer)| peer.receives_reports(now, retention));
        let receivers: BTreeSet<PeerAddr> =
            receivers.filter_map(|(_, peer)| peer.address).collect();
        self.context.receivers = receivers.into_iter().filter(|address| *address != own).collect();
        self.reports.nodes = self.membership.len() as u64 + 1;
        self.publish_slack(now);
    }

    /// Marks older lives at this address, or of this node, as gone.
    pub(super) fn supersede(&mut self, now: u64, newer: Origin, address: PeerAddr) {
        let older = self.peers.iter().filter(|(origin, peer)| {
            let same = origin.node == newer.node || peer.address == Some(address);
            same && origin.incarnation < newer.incarnation && peer.state != PeerState::Left
        });
        for origin in older.map(|(origin, _)| origin).collect::<Vec<_>>() {
            match self.peers.get_mut(origin) {
                // It was known to be down: no event.
                Some(peer) if peer.state != PeerState::Up => peer.state = PeerState::Left,
                _ => self.set_state(now, origin, PeerState::Left),
            }
            self.membership.receivers_changed = true;
        }
    }
}
