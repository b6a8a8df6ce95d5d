//! What people and monitoring see of a cluster. It is all in the table, so every process of a host
//! sees the same, whichever of them runs the exchange.

use std::net::SocketAddr;
use std::time::Duration;

use super::counter::Counter;
use super::event::Event;
use crate::cluster::access::{Exchange, Facts};
use crate::table::Table;

/// A cluster, as seen from one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterStats {
    /// This node.
    pub node: u64,
    /// The present life of its exchange; zero: it has not begun.
    pub incarnation: u64,
    /// The process that runs the exchange, or did last.
    pub pid: u64,
    /// Peers that are there or were lately.
    pub peers: Vec<PeerStats>,
    /// What was counted, by name.
    pub counts: Vec<(&'static str, u64)>,
}

/// A peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerStats {
    /// Which node.
    pub node: u64,
    /// In which life.
    pub incarnation: u64,
    /// Its address, if that is an IP address.
    pub address: Option<SocketAddr>,
    /// `up`, `down`, `left`, or `known` if it has yet to become a member.
    pub state: &'static str,
    /// How long ago it was last heard.
    pub age: Duration,
    /// How long a datagram takes.
    pub delay: Duration,
    /// Reports applied.
    pub received: u64,
    /// Those of them that had been missing at first.
    pub repaired: u64,
    /// Reports that are lost for good.
    pub lost: u64,
}

impl ClusterStats {
    /// `None` if no exchange has ever begun.
    pub(crate) fn if_begun(table: &Table, now: u64) -> Option<ClusterStats> {
        Some(ClusterStats::of(table, now)).filter(|cluster| cluster.incarnation > 0)
    }

    pub(crate) fn of(table: &Table, now: u64) -> ClusterStats {
        let (incarnation, pid) = table.exchanger();
        let peers = table.seats().map(|(seat, origin)| {
            let Facts { address, state, last_heard_ns, delay_ns, received, repaired, lost } =
                table.facts(seat);
            PeerStats {
                node: origin.node,
                incarnation: origin.incarnation,
                address,
                state: state_name(state),
                age: Duration::from_nanos(now.saturating_sub(last_heard_ns)),
                delay: Duration::from_nanos(delay_ns),
                received,
                repaired,
                lost,
            }
        });
        let counts = Counter::names().enumerate();
        ClusterStats {
            // A node that never was in a cluster has no number.
            node: table.known_node_id(),
            incarnation,
            pid,
            peers: peers.collect(),
            counts: counts.map(|(place, name)| (name, table.counted(place))).collect(),
        }
    }

    /// A count by its name; zero if there is none.
    pub fn count(&self, name: &str) -> u64 {
        self.counts.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count)
    }
}

fn state_name(state: u64) -> &'static str {
    match state {
        1 => "up",
        2 => "down",
        3 => "left",
        _ => "known",
    }
}

/// An event as it is told to applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterEvent {
    /// Counts events, from 1.
    pub number: u64,
    /// How long ago it happened.
    pub age: Duration,
    /// `peer_up`, `peer_down`, `peer_left`, `rules_differ`, `reports_lost` or `warm_start`.
    pub kind: &'static str,
    /// The peer it is about.
    pub node: u64,
    /// How many, where that matters.
    pub value: u64,
}

/// The events after a number that are still known, in order.
pub(crate) fn events_since(exchange: &Exchange, number: u64) -> Vec<ClusterEvent> {
    let now = exchange.now();
    let raw = exchange.notes_since(number).into_iter();
    raw.map(|raw| ClusterEvent {
        number: raw.number,
        age: Duration::from_nanos(now.saturating_sub(raw.at_ns)),
        kind: Event::kind_name(raw.kind),
        node: raw.node,
        value: raw.value,
    })
    .collect()
}
