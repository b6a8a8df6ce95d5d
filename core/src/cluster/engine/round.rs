//! What is done about once a second.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::{Engine, To};
use crate::cluster::Origin;
use crate::cluster::access::Facts;
use crate::cluster::pace;
use crate::cluster::peer::State;
use crate::cluster::slack::Slack;

impl Engine {
    pub(super) fn round(&mut self, now: u64) {
        self.learn(now);
        self.history.expire(now.saturating_sub(self.retention()));
        self.forget_peers(now);
        self.try_addresses(now);
        self.send_digest(now);
        self.ping(now);
        self.update_told(now);
        self.publish(now);
    }

    /// Finds rules that other processes of the table have.
    pub(super) fn learn(&mut self, now: u64) {
        self.learned_at = now;
        self.exchange.learn();
        self.outbox.learn(&self.exchange, &self.settings, now);
    }

    /// Greets whoever is not there yet.
    pub(super) fn try_addresses(&mut self, now: u64) {
        let up = self.peers.values().filter(|peer| peer.state == State::Up);
        let up: BTreeSet<SocketAddr> = up.filter_map(|peer| peer.address).collect();
        let own = self.settings.address;
        let missing = self.tried.iter().copied().filter(|at| *at != own && !up.contains(at));
        for address in missing.collect::<Vec<_>>() {
            self.greet(now, To::One(address));
        }
        if self.settings.multicast {
            self.greet(now, To::Group);
        }
        let unproven = self.peers.iter().filter(|(_, peer)| {
            peer.state == State::Up && !peer.is_proven() && peer.address.is_some()
        });
        let unproven: Vec<(Origin, _)> = unproven.map(|(o, peer)| (*o, peer.address)).collect();
        for (origin, address) in unproven {
            address.into_iter().for_each(|address| self.challenge(now, address, origin));
        }
    }

    /// Measures round trips: to anybody, and to the one that seems farthest, so that a moment's
    /// delay is soon forgotten.
    fn ping(&mut self, now: u64) {
        let up = self.peers.values().filter(|peer| peer.state == State::Up);
        let farthest = up.max_by_key(|peer| peer.delay).and_then(|peer| peer.address);
        for address in self.anybody().into_iter().chain(farthest) {
            self.greet(now, To::One(address));
        }
    }

    fn forget_peers(&mut self, now: u64) {
        // Long after anybody has reports of it that could be charged again.
        let before = now.saturating_sub(self.retention() + pace::FORGET);
        let old = self.peers.iter().filter(|(_, peer)| {
            peer.state != State::Up && peer.heard_at.max(peer.applied_at.unwrap_or(0)) < before
        });
        for origin in old.map(|(origin, _)| *origin).collect::<Vec<_>>() {
            let peer = self.peers.remove(&origin);
            self.asking.remove(&origin);
            if let Some(seat) = peer.and_then(|peer| peer.seat) {
                self.exchange.free_seat(seat);
            }
        }
    }

    /// Writes into the table what checks need: the longest round trip in the cluster. Without
    /// peers there is none.
    pub(super) fn publish_slack(&mut self, now: u64) {
        let up = self.peers.values().filter(|peer| peer.state == State::Up);
        match up.map(|peer| peer.delay.unwrap_or(0)).max() {
            Some(delay) => self.slack.measured(now, delay),
            None => self.slack = Slack::default(),
        }
        self.exchange.set_slack(self.slack.ns());
        self.exchange.set_nodes(self.outbox.nodes);
    }

    /// Writes into the table what other processes may want to see.
    fn publish(&mut self, now: u64) {
        for peer in self.peers.values_mut() {
            let Some(seat) = peer.seat else { continue };
            let heard = peer.heard_at;
            if !peer.changed && now.saturating_sub(heard) > 2 * pace::ROUND {
                continue;
            }
            peer.changed = false;
            let facts = Facts {
                address: peer.address,
                state: peer.state.number(),
                last_heard_ns: heard,
                delay_ns: peer.delay.unwrap_or(0),
                received: peer.received,
                repaired: peer.repaired,
                lost: peer.lost,
            };
            self.exchange.set_facts(seat, &facts);
        }
    }
}
