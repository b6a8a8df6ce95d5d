//! Periodic work that is done about once a second.

use super::{Engine, To};
use crate::cluster::access::PeerStatus;
use crate::cluster::pace;
use crate::cluster::peer::PeerState;
use crate::cluster::slack::Slack;

impl Engine {
    pub(super) fn housekeeping(&mut self, now: u64) {
        self.reports.refresh_rules(now, &mut self.context);
        self.repair.history.expire(now.saturating_sub(self.context.retention()));
        self.forget_peers(now);
        self.greet_missing(now);
        self.send_digest(now);
        self.measure_delays(now);
        self.update_receivers(now);
        self.publish_peers(now);
    }

    /// Greets the candidate addresses at which no member is known, and challenges the members that
    /// have not answered a challenge yet.
    pub(super) fn greet_missing(&mut self, now: u64) {
        let own = self.context.settings.address;
        for address in self.membership.missing_candidates(own, &self.peers) {
            self.greet(now, To::One(address));
        }
        if self.context.settings.multicast {
            self.greet(now, To::Group);
        }
        let unproven = self.peers.iter().filter_map(|(origin, peer)| {
            let is_unproven = peer.state == PeerState::Up && !peer.is_proven();
            peer.address.filter(|_| is_unproven).map(|address| (origin, address))
        });
        for (origin, address) in unproven.collect::<Vec<_>>() {
            self.challenge(now, address, origin);
        }
    }

    /// Measures the round trip to a random member and to the one with the longest delay, so that a
    /// delay that was long for a moment is soon measured again.
    fn measure_delays(&mut self, now: u64) {
        let farthest = self.peers.up().max_by_key(|peer| peer.delay).and_then(|peer| peer.address);
        let random = self.context.choose(&self.peers.proven_addresses());
        for address in random.into_iter().chain(farthest) {
            self.greet(now, To::One(address));
        }
    }

    /// Removes peers that have been silent for so long that no node stores their reports any more.
    fn forget_peers(&mut self, now: u64) {
        let before = now.saturating_sub(self.context.retention() + pace::FORGET_AFTER);
        let forgotten = self.peers.forget(&self.context.exchange, |peer| {
            peer.state != PeerState::Up
                && peer.last_heard_at.max(peer.applied_at.unwrap_or(0)) < before
        });
        forgotten.into_iter().for_each(|origin| self.repair.forget(origin));
    }

    /// Writes the longest round trip in the cluster and the number of nodes into the table, for
    /// checks. Without peers, the slack is zero.
    pub(super) fn publish_slack(&mut self, now: u64) {
        match self.peers.up().map(|peer| peer.delay.unwrap_or(0)).max() {
            Some(delay) => self.slack.record_measurement(now, delay),
            None => self.slack = Slack::default(),
        }
        self.context.exchange.set_slack(self.slack.ns());
        self.context.exchange.set_nodes(self.reports.nodes);
    }

    /// Writes the status of the peers into the table, where other processes read it.
    fn publish_peers(&mut self, now: u64) {
        for peer in self.peers.values_mut() {
            let Some(peer_slot) = peer.peer_slot else { continue };
            let last_heard = peer.last_heard_at;
            if !peer.changed && now.saturating_sub(last_heard) > 2 * pace::HOUSEKEEPING {
                continue;
            }
            peer.changed = false;
            let status = PeerStatus {
                state: peer.state.number(),
                last_heard_ns: last_heard,
                delay_ns: peer.delay.unwrap_or(0),
                received: peer.received,
                repaired: peer.repaired,
                lost: peer.lost,
                ..PeerStatus::default()
            };
            self.context.exchange.set_peer_status(peer_slot, peer.address, status);
        }
    }
}
