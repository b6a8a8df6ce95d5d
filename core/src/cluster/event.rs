//! Events of the cluster.

use super::Origin;
use crate::cluster::access::RawEvent;

/// A change in the cluster that an operator may want to know about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A peer became a member of the cluster.
    PeerUp(Origin),
    /// The failure detector declared a peer dead.
    PeerDown(Origin),
    /// A peer announced that it leaves the cluster, or a newer incarnation of it replaced it.
    PeerLeft(Origin),
    /// The rules of a peer, or their rates or bursts, differ from those of this node.
    RulesDiffer(Origin),
    /// Reports of a peer are missing and can no longer be repaired. The number counts the reports.
    Lost(Origin, u64),
    /// This node started with the buckets of a peer. The number counts the buckets.
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
