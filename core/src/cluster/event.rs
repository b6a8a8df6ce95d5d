//! What people may want to know about the cluster.

use super::Origin;
use crate::cluster::access::RawEvent;

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A peer is there.
    PeerUp(Origin),
    /// A peer is taken for dead.
    PeerDown(Origin),
    /// A peer said goodbye.
    PeerLeft(Origin),
    /// A peer has other rules, or other rates or bursts for them.
    RulesDiffer(Origin),
    /// Reports of a peer are lost for good: so many.
    Lost(Origin, u64),
    /// The buckets of a peer were taken over at the start: so many.
    WarmStart(Origin, u64),
}

impl Event {
    pub(super) fn kind_name(kind: u64) -> &'static str {
        match kind {
            1 => "peer_up",
            2 => "peer_down",
            3 => "peer_left",
            4 => "rules_differ",
            5 => "reports_lost",
            6 => "warm_start",
            _ => "unknown",
        }
    }

    pub(super) fn raw(self, at_ns: u64) -> RawEvent {
        let (kind, origin, value) = match self {
            Event::PeerUp(origin) => (1, origin, 0),
            Event::PeerDown(origin) => (2, origin, 0),
            Event::PeerLeft(origin) => (3, origin, 0),
            Event::RulesDiffer(origin) => (4, origin, 0),
            Event::Lost(origin, count) => (5, origin, count),
            Event::WarmStart(origin, count) => (6, origin, count),
        };
        RawEvent { number: 0, at_ns, kind, node: origin.node, value }
    }
}
