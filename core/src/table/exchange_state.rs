//! What the processes of a table share about the exchange: which process runs it, counters, and
//! recent events.
//!
//! Any process may write. Events are numbered and stored in a ring. An event's number is written
//! last, so that a reader never takes half an event. A slow reader misses the oldest events.

use std::array;
use std::sync::atomic::{Ordering, fence};

use super::Table;
use super::cell::AtomicU64;

/// Number of counters.
pub(crate) const COUNTERS: usize = 48;
/// Number of events that are kept.
const EVENTS: usize = 64;

/// An event in numbers. The engine defines their meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawEvent {
    /// Number of the event, from 1. Set by the table.
    pub number: u64,
    /// When it happened, in table time.
    pub at_ns: u64,
    /// Kind of the event.
    pub kind: u64,
    /// The node that the event is about.
    pub node: u64,
    /// A detail that depends on the kind.
    pub value: u64,
}

/// The shared state of the exchange, in the region.
#[repr(C)]
#[derive(Debug)]
pub(super) struct ExchangeState {
    /// The ID of this node in the cluster. 0: none yet.
    node_id: AtomicU64,
    /// Number of nodes in the cluster.
    nodes: AtomicU64,
    /// The incarnation of the exchange, and the process that runs it.
    incarnation: AtomicU64,
    pid: AtomicU64,
    counters: [AtomicU64; COUNTERS],
    /// The number of the last event.
    last_event: AtomicU64,
    events: [SharedEvent; EVENTS],
}

#[repr(C)]
#[derive(Debug, Default)]
struct SharedEvent {
    number: AtomicU64,
    /// Time, kind, node and value.
    words: [AtomicU64; 4],
}

impl ExchangeState {
    pub(super) fn copy_node_to(&self, new: &ExchangeState) {
        // Relaxed: no other process sees the new table yet.
        new.node_id.store(self.node_id.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Table {
    /// Returns the node's ID, which becomes `fresh` if the table has none yet.
    pub(crate) fn node_id(&self, fresh: u64) -> u64 {
        let node_id = &self.region.header().exchange.node_id;
        // Relaxed: only the number matters.
        match node_id.compare_exchange(0, fresh.max(1), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => fresh.max(1),
            Err(known) => known,
        }
    }

    /// The node's ID, or 0 if it has none yet.
    pub(crate) fn known_node_id(&self) -> u64 {
        self.region.header().exchange.node_id.load(Ordering::Relaxed)
    }

    /// Replaces the node's ID.
    pub(crate) fn renew_node_id(&self, fresh: u64) {
        self.region.header().exchange.node_id.store(fresh.max(1), Ordering::Relaxed);
    }

    /// Number of nodes in the cluster including this one. 0: unknown.
    pub(crate) fn nodes(&self) -> u64 {
        self.region.header().exchange.nodes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_nodes(&self, nodes: u64) {
        self.region.header().exchange.nodes.store(nodes, Ordering::Relaxed);
    }

    /// The incarnation of the exchange, and the process that last ran it.
    pub(crate) fn exchanger(&self) -> (u64, u64) {
        let state = &self.region.header().exchange;
        (state.incarnation.load(Ordering::Relaxed), state.pid.load(Ordering::Relaxed))
    }

    pub(crate) fn set_exchanger(&self, incarnation: u64, pid: u64) {
        let state = &self.region.header().exchange;
        state.incarnation.store(incarnation, Ordering::Relaxed);
        state.pid.store(pid, Ordering::Relaxed);
    }

    /// Adds to a counter. Unknown counters are ignored.
    pub(crate) fn add_to_counter(&self, counter: usize, by: u64) {
        if let Some(counter) = self.region.header().exchange.counters.get(counter) {
            // Relaxed: counters order nothing.
            counter.fetch_add(by, Ordering::Relaxed);
        }
    }

    pub(crate) fn counter(&self, counter: usize) -> u64 {
        let counter = self.region.header().exchange.counters.get(counter);
        counter.map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    /// Stores an event. Its `number` is ignored and assigned here.
    pub(crate) fn push_event(&self, event: RawEvent) {
        let state = &self.region.header().exchange;
        let number = state.last_event.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let event_slot = &state.events[number as usize % EVENTS];
        event_slot.number.store(0, Ordering::Relaxed);
        // Release: a reader that sees a word of this event also sees that the number is 0, or this
        // event's.
        fence(Ordering::Release);
        let words = [event.at_ns, event.kind, event.node, event.value];
        for (target, word) in event_slot.words.iter().zip(words) {
            target.store(word, Ordering::Relaxed);
        }
        // Release: a reader that sees the number sees the event.
        event_slot.number.store(number, Ordering::Release);
    }

    /// The stored events with greater numbers than this one, in order.
    pub(crate) fn events_since(&self, number: u64) -> Vec<RawEvent> {
        let indexed = self.region.header().exchange.events.iter().enumerate();
        let is_later = |(index, event): &(usize, RawEvent)| {
            event.number > number && event.number as usize % EVENTS == *index
        };
        let events = indexed.filter_map(|(index, event)| Some((index, event.read()?)));
        let mut events: Vec<RawEvent> = events.filter(is_later).map(|(_, event)| event).collect();
        events.sort_unstable_by_key(|event| event.number);
        events
    }
}

impl SharedEvent {
    /// Returns `None` if the event is being written.
    fn read(&self) -> Option<RawEvent> {
        // Acquire: pairs with the last store of `push_event`.
        let number = self.number.load(Ordering::Acquire);
        let words: [u64; 4] = array::from_fn(|i| self.words[i].load(Ordering::Relaxed));
        // Pairs with the fence in `push_event`.
        fence(Ordering::Acquire);
        let is_whole = self.number.load(Ordering::Relaxed) == number;
        let [at_ns, kind, node, value] = words;
        is_whole.then_some(RawEvent { number, at_ns, kind, node, value })
    }
}
