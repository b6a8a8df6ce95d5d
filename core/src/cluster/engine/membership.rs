//! Membership: addresses to greet, members according to SWIM, and the consequences when the state
//! of a peer changes.

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
    /// Addresses to greet until a member is known there.
    candidates: Vec<PeerAddr>,
    /// Addresses of peers that an earlier exchanging process stored in the table.
    remembered: Vec<PeerAddr>,
    pub(super) challenges: Challenges,
    /// Whether `update_receivers` has to be called.
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

    /// Discards all members and starts again under another identity.
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

    /// Replaces the candidate addresses. Returns those to greet now: new ones and remembered ones.
    pub(super) fn set_candidates(&mut self, addresses: &[PeerAddr]) -> BTreeSet<PeerAddr> {
        let new = addresses.iter().filter(|address| !self.candidates.contains(address)).copied();
        let new = new.chain(std::mem::take(&mut self.remembered)).collect();
        self.candidates = addresses.to_vec();
        new
    }

    /// Returns the candidate addresses at which no member is known.
    pub(super) fn missing_candidates(&self, own: PeerAddr, peers: &Peers) -> Vec<PeerAddr> {
        let up: BTreeSet<PeerAddr> = peers.up().filter_map(|peer| peer.address).collect();
        let candidates = self.candidates.iter().copied();
        candidates.filter(|at| *at != own && !up.contains(at)).collect()
    }

    /// Announces this node to a peer.
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
    /// Applies membership changes, and sends the datagrams of the membership protocol.
    pub(super) fn apply_membership(&mut self, now: u64) {
        while let Some(change) = self.membership.swim.next_change() {
            match change {
                MembershipChange::Up(identity) => self.handle_up(now, &identity),
                MembershipChange::Down(identity) => {
                    let origin = identity.origin();
                    let address = self.peers.get(origin).and_then(|peer| peer.address);
                    // If the addresses differ, the peer is now at another one.
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
        // Ignores this node's own earlier identities, and peers beyond the limit.
        if origin.node == self.context.origin.node || !self.peers.can_add(origin) {
            return;
        }
        self.peers.entry(now, origin).address = Some(identity.address);
        self.set_state(now, origin, PeerState::Up);
        if !self.peers.is_proven(origin) {
            self.challenge(now, identity.address, origin);
        }
    }

    /// Changes a peer's state, and emits an event for the change.
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
            // It was counted when it was declared dead.
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

    /// Updates the list of addresses that receive reports. Each address is listed once.
    pub(super) fn update_receivers(&mut self, now: u64) {
        let (own, retention) = (self.context.settings.address, self.context.retention());
        let receivers = self.peers.iter().filter(|(_, peer)| peer.receives_reports(now, retention));
        let receivers: BTreeSet<PeerAddr> =
            receivers.filter_map(|(_, peer)| peer.address).collect();
        self.context.receivers = receivers.into_iter().filter(|address| *address != own).collect();
        self.reports.nodes = self.membership.len() as u64 + 1;
        self.publish_slack(now);
    }

    /// Marks older incarnations of this node, and older nodes at this address, as having left.
    pub(super) fn supersede(&mut self, now: u64, newer: Origin, address: PeerAddr) {
        let older = self.peers.iter().filter(|(origin, peer)| {
            let same = origin.node == newer.node || peer.address == Some(address);
            same && origin.incarnation < newer.incarnation && peer.state != PeerState::Left
        });
        for origin in older.map(|(origin, _)| origin).collect::<Vec<_>>() {
            match self.peers.get_mut(origin) {
                // It was already down, so no event is emitted.
                Some(peer) if peer.state != PeerState::Up => peer.state = PeerState::Left,
                _ => self.set_state(now, origin, PeerState::Left),
            }
            self.membership.receivers_changed = true;
        }
    }
}
