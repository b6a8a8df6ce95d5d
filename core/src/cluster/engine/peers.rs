//! The peers that this node knows, and their peer slots in the table.

use std::collections::BTreeMap;

use crate::cluster::access::Exchange;
use crate::cluster::peer::{Peer, PeerState};
use crate::cluster::window::LAST_NUMBER;
use crate::cluster::{Origin, PeerAddr, Window};

/// The maximum number of origins that are known at the same time.
const MAX_PEERS: usize = 4096;

#[derive(Default)]
pub(super) struct Peers {
    known: BTreeMap<Origin, Peer>,
    /// Whether another process ran the exchange before. It may have applied reports of peers that
    /// got no peer slot.
    is_resumed: bool,
}

impl Peers {
    /// Loads the peers that an earlier exchanging process stored in the table.
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

    /// Returns the peer, and adds it first if it is not known.
    pub(super) fn entry(&mut self, now: u64, origin: Origin) -> &mut Peer {
        self.known.entry(origin).or_insert_with(|| Peer { last_heard_at: now, ..Peer::default() })
    }

    /// Returns true if an origin is known or can be added. Their number is limited, because any
    /// node with the key can invent origins.
    pub(super) fn can_add(&self, origin: Origin) -> bool {
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

    /// The addresses of the members that have answered a challenge.
    pub(super) fn proven_addresses(&self) -> Vec<PeerAddr> {
        self.up().filter(|peer| peer.is_proven()).filter_map(|peer| peer.address).collect()
    }

    /// Returns true if a peer has answered a challenge.
    pub(super) fn is_proven(&self, origin: Origin) -> bool {
        self.get(origin).is_some_and(Peer::is_proven)
    }

    /// Returns the one-way delay of a peer in nanoseconds, or 0 if it is not known.
    pub(super) fn delay_of(&self, origin: Origin) -> u64 {
        self.get(origin).and_then(|peer| peer.delay).unwrap_or(0)
    }

    /// Removes the peers for which `is_old` returns true, and frees their peer slots.
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

    /// Claims a peer slot for a peer, so that another process can continue with its window.
    pub(super) fn claim_peer_slot(&mut self, exchange: &Exchange, origin: Origin) {
        let Some(peer) = self.get_mut(origin) else { return };
        if peer.peer_slot.is_none() {
            peer.peer_slot = exchange.claim_peer_slot(origin);
            if let Some(peer_slot) = peer.peer_slot {
                exchange.set_window(peer_slot, &peer.window);
            }
        }
    }

    /// Copies a peer's window into its peer slot.
    pub(super) fn store_window(&self, exchange: &Exchange, origin: Origin) {
        let Some(peer) = self.get(origin) else { return };
        if let Some(peer_slot) = peer.peer_slot {
            exchange.set_window(peer_slot, &peer.window);
        }
    }

    /// Marks all reports up to `top` as applied if the peer has no peer slot. An earlier exchanging
    /// process may have applied them, and skipping reports is better than charging them twice.
    pub(super) fn skip_unknown_past(&mut self, origin: Origin, top: u64) {
        let is_resumed = self.is_resumed;
        let Some(peer) = self.get_mut(origin) else { return };
        if is_resumed && peer.peer_slot.is_none() && peer.window.top() == 0 && top <= LAST_NUMBER {
            peer.window = Window::new(top, Vec::new());
        }
    }
}
