//! State that all parts of the engine share: settings, table, random numbers and the output queue.

use std::collections::VecDeque;
use std::sync::Arc;

use rand::RngExt;
use rand::rngs::SmallRng;

use super::{Output, To, Transmit};
use crate::cluster::access::Exchange;
use crate::cluster::counter::Counter;
use crate::cluster::settings::Settings;
use crate::cluster::wire::{DatagramKind, Envelope};
use crate::cluster::{Event, Origin, PeerAddr};

pub(super) struct Context {
    pub(super) settings: Settings,
    pub(super) exchange: Exchange,
    /// This incarnation of this node.
    pub(super) origin: Origin,
    pub(super) rng: SmallRng,
    /// The addresses to which reports are sent.
    pub(super) receivers: Arc<[PeerAddr]>,
    /// The packet number of the last datagram.
    packet: u64,
    outputs: VecDeque<Output>,
}

impl Context {
    pub(super) fn new(
        settings: Settings,
        exchange: Exchange,
        origin: Origin,
        rng: SmallRng,
    ) -> Context {
        let (receivers, outputs) = (Arc::new([]), VecDeque::new());
        Context { settings, exchange, origin, rng, receivers, packet: 0, outputs }
    }

    pub(super) fn next_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Seals a datagram and queues it.
    pub(super) fn send(&mut self, to: To, kind: DatagramKind, flags: u8, body: &[u8]) {
        let receivers = match &to {
            To::Each(addresses) => addresses.len() as u64,
            To::One(_) | To::Group => 1,
        };
        self.packet += 1;
        if receivers == 0 {
            return;
        }
        let mut bytes = Vec::new();
        let envelope = Envelope { kind, flags, sender: self.origin, packet: self.packet };
        self.settings.keys.seal(&envelope, body, &mut bytes);
        self.count(Counter::DatagramsSent, receivers);
        self.count(Counter::BytesSent, receivers * bytes.len() as u64);
        self.outputs.push_back(Output::Transmit(Transmit { to, bytes }));
    }

    /// Sends a datagram to the multicast group, or else to all receivers of reports.
    pub(super) fn broadcast(&mut self, kind: DatagramKind, flags: u8, body: &[u8]) {
        let to = match self.settings.multicast {
            true => To::Group,
            false => To::Each(Arc::clone(&self.receivers)),
        };
        self.send(to, kind, flags, body);
    }

    /// Whether a broadcast has any receiver.
    pub(super) fn has_receivers(&self) -> bool {
        self.settings.multicast || !self.receivers.is_empty()
    }

    /// Stores an event in the table and queues it as an output.
    pub(super) fn emit(&mut self, now: u64, event: Event) {
        self.exchange.push_event(event.raw(now));
        self.outputs.push_back(Output::Event(event));
    }

    pub(super) fn count(&self, counter: Counter, by: u64) {
        self.exchange.add_to_counter(counter.index(), by);
    }

    /// How long reports are kept for repair, in nanoseconds.
    pub(super) fn retention(&self) -> u64 {
        u64::try_from(self.settings.retention.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns `time` changed by up to a fifth at random, so that the timers of nodes do not
    /// synchronize.
    pub(super) fn jittered(&mut self, time: u64) -> u64 {
        self.rng.random_range(time * 8 / 10..=time * 12 / 10)
    }

    /// Returns one of these addresses at random.
    pub(super) fn choose(&mut self, addresses: &[PeerAddr]) -> Option<PeerAddr> {
        match addresses.len() {
            0 => None,
            count => Some(addresses[self.rng.random_range(0..count)]),
        }
    }
}
