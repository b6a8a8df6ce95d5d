//! The peers that this node knows, and their slots in the table.

use std::collections::BTreeMap;

use crate::cluster::access::Exchange;
use crate::cluster::peer::{Peer, PeerState};
use crate::cluster::window::LAST_NUMBER;
use crate::cluster::{Origin, PeerAddr, Window};

/// The most origins that are known at a time.
const MAX_PEERS: usize = 4096;

#[derive(Default)]
pub(super) struct Peers {
    known: BTreeMap<Origin, Peer>,
    /// Whether another process ran the exchange before. It may have applied reports of peers that
    /// have no slot in the table.
    is_resumed: bool,
}

impl Peers {
    /// The peers that an earlier exchanger of the table left there.
    pub(super) fn resume(exchange: &Exchange, now: u64) -> Peers {
        let peer_slots = exchange.peer_slots().map(|(peer_slot, origin)| {
            let (window, address) = (exchange.window(peer_slot), exchange.address(peer_slot));
            let peer_slot = Some(peer_slot);
            (origin, Peer { peer_slot, window, address, last_heard_at: now, ..Peer::default() })
        });
        let known: BTreeMap<Origin, Peer> = peer_slots.collect();
        Peers { is_resumed: !known.is_empty(), known }
    }

    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn get(&self, origin: Origin) -> Option<&Peer> {
        self.known.get(&origin)
    }

    pub(super) fn get_mut(&mut self, origin: Origin) -> Option<&mut Peer> {
        self.known.get_mut(&origin)
    }

    /// The peer, which is added if it is not known.
    pub(super) fn entry(&mut self, now: u64, origin: Origin) -> &mut Peer {
        self.known.entry(origin).or_insert_with(|| Peer { last_heard_at: now, ..Peer::default() })
    }

    /// Whether an origin is known or can be added. Any node with the key may name any number of
    /// origins.
    pub(super) fn has_room_for(&self, origin: Origin) -> bool {
        self.known.len() < MAX_PEERS || self.known.contains_key(&origin)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Origin, &Peer)> {
        self.known.iter().map(|(origin, peer)| (*origin, peer))
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.known.values_mut()
    }

    /// The members of the cluster.
    pub(super) fn up(&self) -> impl Iterator<Item = &Peer> {
        self.known.values().filter(|peer| peer.state == PeerState::Up)
    }

    /// Where the members are that have answered a challenge.
    pub(super) fn proven_addresses(&self) -> Vec<PeerAddr> {
        self.up().filter(|peer| peer.is_proven()).filter_map(|peer| peer.address).collect()
    }

    /// Whether a peer has answered a challenge.
    pub(super) fn is_proven(&self, origin: Origin) -> bool {
        self.get(origin).is_some_and(Peer::is_proven)
    }

    /// How long a datagram from this peer takes; 0 if that is not known.
    pub(super) fn delay_of(&self, origin: Origin) -> u64 {
        self.get(origin).and_then(|peer| peer.delay).unwrap_or(0)
    }

    /// Removes the peers that `is_old` says, and frees their slots in the table.
    pub(super) fn forget(
        &mut self,
        exchange: &Exchange,
        is_old: impl Fn(&Peer) -> bool,
    ) -> Vec<Origin> {
        let old: Vec<Origin> =
            self.iter().filter(|(_, peer)| is_old(peer)).map(|(origin, _)| origin).collect();
        for origin in &old {
            let peer = self.known.remove(origin);
            if let Some(peer_slot) = peer.and_then(|peer| peer.peer_slot) {
                exchange.free_peer_slot(peer_slot);
            }
        }
        old
    }

    /// Gives a peer a slot in the table, so that another process could continue with it.
    pub(super) fn claim_peer_slot(&mut self, exchange: &Exchange, origin: Origin) {
        let Some(peer) = self.get_mut(origin) else { return };
        if peer.peer_slot.is_none() {
            peer.peer_slot = exchange.claim_peer_slot(origin);
            if let Some(peer_slot) = peer.peer_slot {
                exchange.set_window(peer_slot, &peer.window);
            }
        }
    }

    /// Copies a peer's window into the table.
    pub(super) fn store_window(&self, exchange: &Exchange, origin: Origin) {
        let Some(peer) = self.get(origin) else { return };
        if let Some(peer_slot) = peer.peer_slot {
            exchange.set_window(peer_slot, &peer.window);
        }
    }

    /// Takes all reports up to `top` as applied if the peer has no slot: the process before may
    /// have applied them, and missing some is better than charging them twice.
    pub(super) fn skip_unknown_past(&mut self, origin: Origin, top: u64) {
        let is_resumed = self.is_resumed;
        let Some(peer) = self.get_mut(origin) else { return };
        if is_resumed && peer.peer_slot.is_none() && peer.window.top() == 0 && top <= LAST_NUMBER {
            peer.window = Window::new(top, Vec::new());
        }
    }
}
