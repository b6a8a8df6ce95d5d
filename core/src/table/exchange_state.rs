//! What the processes of a table tell each other about the exchange: who runs it, counters, and the
//! last events.
//!
//! Any process may write. An event is numbered and written into a ring: its number comes last, so
//! that a reader takes no half of one; whoever is too slow misses the oldest.

use std::array;
use std::sync::atomic::{Ordering, fence};

use super::Table;
use super::cell::AtomicU64;

/// How many counters there are.
pub(crate) const COUNTERS: usize = 48;
/// How many events are kept.
const EVENTS: usize = 64;

/// Something that happened, in numbers; what they mean is the engine's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawEvent {
    /// Counts events, from 1; given by the table.
    pub number: u64,
    /// When, by the table's time.
    pub at_ns: u64,
    /// What.
    pub kind: u64,
    /// Which node it is about.
    pub node: u64,
    /// More about it.
    pub value: u64,
}

/// The shared part of it.
#[repr(C)]
#[derive(Debug)]
pub(super) struct ExchangeState {
    /// What the cluster knows this table as; zero: nobody has said.
    node_id: AtomicU64,
    /// How many nodes there are.
    nodes: AtomicU64,
    /// The life of the exchange, and the process that runs it.
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
    /// When, what, which node, what more.
    words: [AtomicU64; 4],
}

impl ExchangeState {
    pub(super) fn copy_node_to(&self, new: &ExchangeState) {
        // Relaxed: nobody else sees the new table yet.
        new.node_id.store(self.node_id.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Table {
    /// What the cluster knows this table as: from now on this, unless it has a number already.
    pub(crate) fn node_id(&self, fresh: u64) -> u64 {
        let node_id = &self.region.header().exchange.node_id;
        // Relaxed: only the number matters.
        match node_id.compare_exchange(0, fresh.max(1), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => fresh.max(1),
            Err(known) => known,
        }
    }

    /// The same; zero: it has none.
    pub(crate) fn known_node_id(&self) -> u64 {
        self.region.header().exchange.node_id.load(Ordering::Relaxed)
    }

    /// Gives it another number.
    pub(crate) fn renew_node_id(&self, fresh: u64) {
        self.region.header().exchange.node_id.store(fresh.max(1), Ordering::Relaxed);
    }

    /// How many nodes there are, this one included; zero: not known.
    pub(crate) fn nodes(&self) -> u64 {
        self.region.header().exchange.nodes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_nodes(&self, nodes: u64) {
        self.region.header().exchange.nodes.store(nodes, Ordering::Relaxed);
    }

    /// The life of the exchange and the process that ran it last.
    pub(crate) fn exchanger(&self) -> (u64, u64) {
        let state = &self.region.header().exchange;
        (state.incarnation.load(Ordering::Relaxed), state.pid.load(Ordering::Relaxed))
    }

    pub(crate) fn set_exchanger(&self, incarnation: u64, pid: u64) {
        let state = &self.region.header().exchange;
        state.incarnation.store(incarnation, Ordering::Relaxed);
        state.pid.store(pid, Ordering::Relaxed);
    }

    /// Counts something. What there is no counter for is not counted.
    pub(crate) fn add_to_counter(&self, counter: usize, by: u64) {
        if let Some(counter) = self.region.header().exchange.counters.get(counter) {
            // Relaxed: a count orders nothing.
            counter.fetch_add(by, Ordering::Relaxed);
        }
    }

    pub(crate) fn counter(&self, counter: usize) -> u64 {
        let counter = self.region.header().exchange.counters.get(counter);
        counter.map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    /// Notes an event, whose number does not matter.
    pub(crate) fn push_event(&self, event: RawEvent) {
        let state = &self.region.header().exchange;
        let number = state.last_event.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let event_slot = &state.events[number as usize % EVENTS];
        event_slot.number.store(0, Ordering::Relaxed);
        // Who reads a word of this event sees that there is none, or that it is this one.
        fence(Ordering::Release);
        let words = [event.at_ns, event.kind, event.node, event.value];
        for (target, word) in event_slot.words.iter().zip(words) {
            target.store(word, Ordering::Relaxed);
        }
        // Release: who sees the number sees the event.
        event_slot.number.store(number, Ordering::Release);
    }

    /// The events after this number that are still there, in order.
    pub(crate) fn events_since(&self, number: u64) -> Vec<RawEvent> {
        let places = self.region.header().exchange.events.iter().enumerate();
        let is_later = |(place, event): &(usize, RawEvent)| {
            event.number > number && event.number as usize % EVENTS == *place
        };
        let events = places.filter_map(|(place, event)| Some((place, event.read()?)));
        let mut events: Vec<RawEvent> = events.filter(is_later).map(|(_, event)| event).collect();
        events.sort_unstable_by_key(|event| event.number);
        events
    }
}

impl SharedEvent {
    /// Nothing: it is just being written.
    fn read(&self) -> Option<RawEvent> {
        // Acquire: pairs with the last store of `note`.
        let number = self.number.load(Ordering::Acquire);
        let words: [u64; 4] = array::from_fn(|i| self.words[i].load(Ordering::Relaxed));
        // Pairs with the fence of `note`.
        fence(Ordering::Acquire);
        let is_whole = self.number.load(Ordering::Relaxed) == number;
        let [at_ns, kind, node, value] = words;
        is_whole.then_some(RawEvent { number, at_ns, kind, node, value })
    }
}
