//! Digests: each node tells others the number of the last report of every origin that it knows.

use rand::RngExt;

use super::{Engine, To};
use crate::cluster::wire::{ANSWER, DatagramKind, DropCause, parse_digest, write_digest};
use crate::cluster::{Origin, PeerAddr};

/// The largest jump above the last known number that is accepted from a node other than the origin.
const FAR_AHEAD: u64 = 1 << 20;
/// The maximum number of origins in a digest.
const MAX_DIGEST_ORIGINS: usize = 60;

impl Engine {
    /// Sends a digest to a random member.
    pub(super) fn send_digest(&mut self, now: u64) {
        let Some(to) = self.context.choose(&self.peers.proven_addresses()) else { return };
        let mut list = self.fresh_tops(now);
        // Origins are left out at random, so that over time every origin is in some digest.
        while list.len() >= MAX_DIGEST_ORIGINS {
            let out = self.context.rng.random_range(0..list.len());
            list.swap_remove(out);
        }
        list.insert(0, (self.context.origin, self.reports.top));
        let mut body = Vec::new();
        write_digest(&list, &mut body);
        self.context.send(To::One(to), DatagramKind::Digest, 0, &body);
    }

    /// Returns the origins whose reports some node may still store, with their last numbers.
    fn fresh_tops(&self, now: u64) -> Vec<(Origin, u64)> {
        let since = now.saturating_sub(self.context.retention());
        let fresh =
            self.peers.iter().filter(|(_, peer)| peer.applied_at.is_some_and(|at| at > since));
        fresh.map(|(origin, peer)| (origin, peer.window.top())).collect()
    }

    /// Notes the reports that are missing here, and answers with the origins of which the sender
    /// misses some.
    pub(super) fn handle_digest(
        &mut self,
        now: u64,
        sender: Origin,
        from: PeerAddr,
        flags: u8,
        body: &[u8],
    ) -> Result<(), DropCause> {
        let mut ahead = Vec::new();
        for (origin, top) in parse_digest(body)? {
            if origin.node == self.context.origin.node {
                continue;
            }
            let here = self.peers.get(origin).map_or(0, |peer| peer.window.top());
            if origin == sender || here == 0 || top <= here.saturating_add(FAR_AHEAD) {
                self.repair.extend_to(now, &mut self.peers, origin, top);
            }
            if here > top && origin != sender {
                ahead.push((origin, here));
            }
        }
        if flags & ANSWER == 0 && !ahead.is_empty() {
            let mut body = Vec::new();
            write_digest(&ahead, &mut body);
            self.context.send(To::One(from), DatagramKind::Digest, ANSWER, &body);
        }
        Ok(())
    }
}
