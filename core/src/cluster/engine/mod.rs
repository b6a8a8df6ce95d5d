//! The engine: a state machine that takes datagrams and the time, charges the table, and returns
//! datagrams to send.
//!
//! It uses no clock, socket, thread or source of randomness. The driver passes these in. After
//! every call, call `poll` until it returns `Timeout`. Each part of the exchange keeps its state in
//! its own file; this file dispatches datagrams and time to them.

mod context;
mod digest;
mod greet;
mod housekeeping;
mod membership;
mod merger;
mod output;
mod payload;
mod peers;
mod receive;
mod repair;
mod report;
mod rule_pace;
mod snapshot;

use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use self::context::Context;
use self::membership::Membership;
pub use self::output::{Output, To, Transmit};
use self::payload::Payloads;
use self::peers::Peers;
use self::repair::Repair;
use self::report::Reports;
use self::snapshot::Snapshots;
use super::counter::Counter;
use super::members::Identity;
use super::pace::{self, TICK};
use super::peer::PeerState;
use super::settings::Settings;
use super::slack::Slack;
use super::wire::{DatagramKind, DropCause, Envelope};
use super::{Origin, PeerAddr};
use crate::cluster::access::Exchange;

/// The exchange of one node. Times are nanoseconds on the table's clock.
pub struct Engine {
    context: Context,
    peers: Peers,
    membership: Membership,
    reports: Reports,
    repair: Repair,
    snapshots: Snapshots,
    payloads: Payloads,
    slack: Slack,
    schedule: Schedule,
    /// Whether the node has left the cluster. After that, it neither handles nor sends anything.
    has_left: bool,
}

/// The times of the next periodic work.
struct Schedule {
    tick_at: u64,
    housekeeping_at: u64,
}

impl Engine {
    /// Creates an engine for a table. `seed` must be different for each engine, and `incarnation`
    /// must be greater than those of the node's earlier engines.
    pub fn new(
        settings: Settings,
        exchange: Exchange,
        seed: u64,
        incarnation: u64,
        now: u64,
    ) -> Engine {
        let mut rng = SmallRng::seed_from_u64(seed);
        let node = exchange.node_id(rng.random_range(1..=u64::MAX));
        let origin = Origin { node, incarnation };
        let idle = exchange.since_exchange(now);
        let mut peers = Peers::resume(&exchange, now);
        let mut context = Context::new(settings, exchange, origin, rng);
        let membership = Membership::new(&mut context, &peers);
        let reports = Reports::new(&mut context, now);
        context.exchange.keep_alive(now);
        let schedule = Schedule {
            tick_at: now + context.rng.random_range(1..=TICK),
            housekeeping_at: now + context.rng.random_range(1..=pace::HOUSEKEEPING),
        };
        // After a long pause, reports are no longer stored anywhere, so the node needs a snapshot.
        let is_cold = !peers.is_resumed() || idle.is_none_or(|idle| idle > context.retention());
        let mut repair = Repair::new(context.settings.retention_bytes);
        repair.note_all_missing(&mut peers);
        Engine {
            peers,
            membership,
            reports,
            repair,
            snapshots: Snapshots::new(now, is_cold),
            payloads: Payloads::default(),
            slack: Slack::default(),
            schedule,
            has_left: false,
            context,
        }
    }

    /// Returns the node number and the incarnation of this engine.
    pub fn origin(&self) -> Origin {
        self.context.origin
    }

    /// Returns the number of other members of the cluster.
    pub fn peers(&self) -> usize {
        self.membership.len()
    }

    /// Returns the number of origins that are known, including those that are not members.
    pub fn origins(&self) -> usize {
        self.peers.len()
    }

    /// Starts recording which reports are applied. See `take_applied`.
    pub fn record_applied(&mut self) {
        self.reports.applied = Some(Vec::new());
    }

    /// Returns the reports applied since the last call: origin, first and last number. Empty unless
    /// `record_applied` was called.
    pub fn take_applied(&mut self) -> Vec<(Origin, u64, u64)> {
        self.reports.applied.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Sets the address at which peers reach this node.
    pub fn set_address(&mut self, address: PeerAddr) {
        if address != self.context.settings.address {
            self.context.settings.address = address;
            let identity = Identity::new(address, self.context.origin);
            self.membership.restart(identity, &mut self.context.rng);
            // Peers know the old address, so they must be greeted again.
            for peer in self.peers.values_mut().filter(|peer| peer.state == PeerState::Up) {
                peer.state = PeerState::Known;
                self.membership.receivers_changed = true;
            }
        }
    }

    /// Sets the addresses at which peers may be, and greets the new ones.
    pub fn join(&mut self, now: u64, addresses: &[PeerAddr]) {
        if !self.membership.has_candidates() && !addresses.is_empty() {
            self.snapshots.restart_wait(now);
        }
        let own = self.context.settings.address;
        let new = self.membership.set_candidates(addresses);
        for address in new.into_iter().filter(|address| *address != own) {
            self.greet(now, To::One(address));
        }
        if self.context.settings.multicast {
            self.greet(now, To::Group);
        }
    }

    /// Reports all pending hits, and leaves the cluster.
    pub fn leave(&mut self, now: u64) {
        self.report(now, true);
        self.send_payloads(now, true);
        let receivers = To::Each(Arc::clone(&self.context.receivers));
        self.context.send(receivers, DatagramKind::Leave, 0, &[]);
        self.membership.leave(now);
        self.apply_membership(now);
        self.has_left = true;
    }

    /// Handles a datagram, which is decrypted in place.
    pub fn handle_datagram(&mut self, now: u64, from: PeerAddr, datagram: &mut [u8]) {
        if self.has_left {
            return;
        }
        self.context.count(Counter::DatagramsReceived, 1);
        self.context.count(Counter::BytesReceived, datagram.len() as u64);
        let (envelope, body) = match self.context.settings.keys.open(datagram) {
            Ok(opened) => opened,
            Err(cause) => {
                return self.context.exchange.add_to_counter(Counter::dropped_index(cause), 1);
            }
        };
        if envelope.sender.node == self.context.origin.node {
            return self.context.count(Counter::DroppedOwn, 1);
        }
        if self.is_accepted(now, from, &envelope)
            && let Err(cause) = self.handle_message(now, from, &envelope, body)
        {
            self.context.exchange.add_to_counter(Counter::dropped_index(cause), 1);
        }
        self.apply_membership(now);
    }

    /// Returns true if the datagram is new and its sender has answered a challenge. Of other
    /// senders, only greetings are accepted.
    fn is_accepted(&mut self, now: u64, from: PeerAddr, envelope: &Envelope) -> bool {
        let peer = self.peers.get_mut(envelope.sender);
        let Some(replay) = peer.and_then(|peer| peer.replay.as_mut()) else {
            if envelope.kind != DatagramKind::Hello {
                self.context.count(Counter::DroppedUnproven, 1);
                self.challenge(now, from, envelope.sender);
            }
            return envelope.kind == DatagramKind::Hello;
        };
        if !replay.is_new(envelope.packet) && self.context.settings.mechanisms.dedupe {
            self.context.count(Counter::DroppedReplay, 1);
            return false;
        }
        true
    }

    fn handle_message(
        &mut self,
        now: u64,
        from: PeerAddr,
        envelope: &Envelope,
        body: &[u8],
    ) -> Result<(), DropCause> {
        let sender = envelope.sender;
        if let Some(peer) = self.peers.get_mut(sender) {
            peer.last_heard_at = now;
        }
        match envelope.kind {
            DatagramKind::Hello => self.handle_hello(now, from, envelope, body),
            DatagramKind::Report => self.handle_report(now, sender, envelope.flags, body),
            DatagramKind::Gap => self.handle_gap(now, from, body),
            DatagramKind::Gone => self.handle_gone(now, sender, body),
            DatagramKind::Digest => self.handle_digest(now, sender, from, envelope.flags, body),
            DatagramKind::SnapshotRequest => {
                self.handle_snapshot_request(now, from);
                Ok(())
            }
            DatagramKind::Snapshot => self.handle_snapshot(now, sender, body),
            DatagramKind::Swim => self.membership.handle(now, body),
            DatagramKind::Payload => self.handle_payload(now, sender, body),
            DatagramKind::Leave => {
                self.set_state(now, sender, PeerState::Left);
                Ok(())
            }
        }
    }

    /// Does the periodic work that is due.
    pub fn handle_timeout(&mut self, now: u64) {
        if self.has_left {
            return;
        }
        if now >= self.schedule.tick_at {
            self.context.exchange.keep_alive(now);
            self.continue_warm_start(now);
            self.report(now, false);
            self.send_payloads(now, false);
            self.reports.announce_top(now, &mut self.context);
            self.request_missing(now);
            // Random, so that the timers of nodes do not synchronize.
            self.schedule.tick_at = now + self.context.rng.random_range(TICK * 8 / 10..=TICK);
        }
        if now >= self.schedule.housekeeping_at {
            self.housekeeping(now);
            self.schedule.housekeeping_at = now + self.context.jittered(pace::HOUSEKEEPING);
        }
        self.membership.handle_timeout(now);
        self.apply_membership(now);
    }

    /// Returns the next output.
    pub fn poll(&mut self) -> Output {
        self.context.next_output().unwrap_or_else(|| {
            if self.has_left {
                return Output::Timeout(u64::MAX);
            }
            let first = self.schedule.tick_at.min(self.schedule.housekeeping_at);
            Output::Timeout(self.membership.next_timeout().map_or(first, |at| first.min(at)))
        })
    }
}
