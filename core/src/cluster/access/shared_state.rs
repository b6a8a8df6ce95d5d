//! State of the exchange in the table: for the next exchanging process, and for all processes that
//! read statistics. See `table/origins.rs`, `table/peer_status.rs` and `table/exchange_state.rs`.

use super::{Exchange, PeerStatus, RawEvent};
use crate::cluster::{Origin, PeerAddr, Window};

impl Exchange {
    /// Returns the table's node number. If it has none yet, sets it to `fresh` first.
    pub fn node_id(&self, fresh: u64) -> u64 {
        self.host.table.node_id(fresh)
    }

    /// Replaces the table's node number.
    pub fn renew_node_id(&self, fresh: u64) {
        self.host.table.renew_node_id(fresh);
    }

    /// Returns the table's node number, or zero if it has none.
    pub fn known_node_id(&self) -> u64 {
        self.host.table.known_node_id()
    }

    /// The peer slots that are in use, each with its index and origin.
    pub fn peer_slots(&self) -> impl Iterator<Item = (usize, Origin)> {
        self.host.table.peer_slots()
    }

    /// Returns the peer slot of an origin, which gets a free one if it has none. Returns `None` if
    /// all are in use.
    pub fn claim_peer_slot(&self, origin: Origin) -> Option<usize> {
        self.host.table.claim_peer_slot(origin)
    }

    /// Marks a peer slot as free.
    pub fn free_peer_slot(&self, peer_slot: usize) {
        self.host.table.free_peer_slot(peer_slot);
    }

    /// Returns which reports of the origin have been applied.
    pub fn window(&self, peer_slot: usize) -> Window {
        self.host.table.window(peer_slot)
    }

    /// Stores which reports of the origin have been applied. At most 15 missing ranges are stored,
    /// the newest ones, and only numbers within 2^32 below the top. All others count as applied.
    pub fn set_window(&self, peer_slot: usize, window: &Window) {
        self.host.table.set_window(peer_slot, window);
    }

    /// Returns the status of the origin.
    pub fn peer_status(&self, peer_slot: usize) -> PeerStatus {
        self.host.table.peer_status(peer_slot)
    }

    /// Returns the address at which the origin was reached, if `set_peer_status` stored one.
    pub fn address(&self, peer_slot: usize) -> Option<PeerAddr> {
        self.peer_status(peer_slot).address.map(PeerAddr::from)
    }

    /// Stores the status and the address of the origin. Only IP addresses are stored.
    pub fn set_peer_status(&self, peer_slot: usize, address: Option<PeerAddr>, status: PeerStatus) {
        let address = address.and_then(|address| address.socket_addr());
        self.host.table.set_peer_status(peer_slot, &PeerStatus { address, ..status });
    }

    /// Adds to the counter with this index.
    pub fn add_to_counter(&self, counter: usize, by: u64) {
        self.host.table.add_to_counter(counter, by);
    }

    /// Returns the value of the counter with this index.
    pub fn counter(&self, counter: usize) -> u64 {
        self.host.table.counter(counter)
    }

    /// Stores an event.
    pub fn push_event(&self, event: RawEvent) {
        self.host.table.push_event(event);
    }

    /// Returns the stored events with a number greater than `number`, oldest first.
    pub fn events_since(&self, number: u64) -> Vec<RawEvent> {
        self.host.table.events_since(number)
    }

    /// Returns the number of nodes, including this one, or zero if it is not known.
    pub fn nodes(&self) -> u64 {
        self.host.table.nodes()
    }

    /// Stores the number of nodes.
    pub fn set_nodes(&self, nodes: u64) {
        self.host.table.set_nodes(nodes);
    }

    /// Returns the incarnation of the exchange and the id of the process that ran it last.
    pub fn exchanger(&self) -> (u64, u64) {
        self.host.table.exchanger()
    }

    /// Stores the incarnation of the exchange and the id of the process that runs it.
    pub fn set_exchanger(&self, incarnation: u64, pid: u64) {
        self.host.table.set_exchanger(incarnation, pid);
    }

    /// The slack that `set_slack` wrote, in nanoseconds.
    pub fn slack(&self) -> u64 {
        self.host.table.slack()
    }

    /// Stores the slack: how far beyond their limits checks may go because of the delay to the
    /// peers.
    pub fn set_slack(&self, ns: u64) {
        self.host.table.set_slack(ns);
    }
}
