//! What lies in the table for the next exchanger, and for all processes that want to know how the
//! exchange goes. See `table/origins.rs`, `table/peer_status.rs` and `table/exchange_state.rs`.

use super::{Exchange, PeerStatus, RawEvent};
use crate::cluster::{Origin, PeerAddr, Window};

impl Exchange {
    /// What the cluster knows this table as: from now on this, unless it has a number already.
    pub fn node_id(&self, fresh: u64) -> u64 {
        self.host.table.node_id(fresh)
    }

    /// Gives it another number.
    pub fn renew_node_id(&self, fresh: u64) {
        self.host.table.renew_node_id(fresh);
    }

    /// The number; zero: it has none.
    pub fn known_node_id(&self) -> u64 {
        self.host.table.known_node_id()
    }

    /// The origins that have a place.
    pub fn peer_slots(&self) -> impl Iterator<Item = (usize, Origin)> {
        self.host.table.peer_slots()
    }

    /// The place of an origin, which is given one if it has none. `None`: all are taken.
    pub fn claim_peer_slot(&self, origin: Origin) -> Option<usize> {
        self.host.table.claim_peer_slot(origin)
    }

    /// Gives a place back.
    pub fn free_peer_slot(&self, peer_slot: usize) {
        self.host.table.free_peer_slot(peer_slot);
    }

    /// Which reports of an origin have been applied.
    pub fn window(&self, peer_slot: usize) -> Window {
        self.host.table.window(peer_slot)
    }

    /// Notes which reports have been applied. Of more than 15 missing ranges the newest are kept,
    /// and nothing that lies more than 2^32 numbers back: the rest counts as applied.
    pub fn set_window(&self, peer_slot: usize, window: &Window) {
        self.host.table.set_window(peer_slot, window);
    }

    /// What is known of an origin.
    pub fn peer_status(&self, peer_slot: usize) -> PeerStatus {
        self.host.table.peer_status(peer_slot)
    }

    /// Where an origin was reached, if `set_peer_status` kept that.
    pub fn address(&self, peer_slot: usize) -> Option<PeerAddr> {
        self.peer_status(peer_slot).address.map(PeerAddr::from)
    }

    /// Notes what is known of an origin, and where it is reached. Only IP addresses are kept.
    pub fn set_peer_status(&self, peer_slot: usize, address: Option<PeerAddr>, status: PeerStatus) {
        let address = address.and_then(|address| address.socket_addr());
        self.host.table.set_peer_status(peer_slot, &PeerStatus { address, ..status });
    }

    /// Adds to one of the counters.
    pub fn add_to_counter(&self, counter: usize, by: u64) {
        self.host.table.add_to_counter(counter, by);
    }

    /// What a counter says.
    pub fn counter(&self, counter: usize) -> u64 {
        self.host.table.counter(counter)
    }

    /// Notes an event.
    pub fn push_event(&self, event: RawEvent) {
        self.host.table.push_event(event);
    }

    /// The events after a number that are still there, in order.
    pub fn events_since(&self, number: u64) -> Vec<RawEvent> {
        self.host.table.events_since(number)
    }

    /// How many nodes there are, this one included; zero: not known.
    pub fn nodes(&self) -> u64 {
        self.host.table.nodes()
    }

    /// Notes how many there are.
    pub fn set_nodes(&self, nodes: u64) {
        self.host.table.set_nodes(nodes);
    }

    /// The life of the exchange, and the process that ran it last.
    pub fn exchanger(&self) -> (u64, u64) {
        self.host.table.exchanger()
    }

    /// Notes both.
    pub fn set_exchanger(&self, incarnation: u64, pid: u64) {
        self.host.table.set_exchanger(incarnation, pid);
    }

    /// The slack that `set_slack` wrote, in nanoseconds.
    pub fn slack(&self) -> u64 {
        self.host.table.slack()
    }

    /// Says how much later than their time checks may pass, because of the way to the peers.
    pub fn set_slack(&self, ns: u64) {
        self.host.table.set_slack(ns);
    }
}
