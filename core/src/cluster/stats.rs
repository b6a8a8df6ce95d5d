//! Statistics and events of the cluster. They are stored in the table, so every process on a host
//! sees the same values, whichever process runs the exchange.

use std::time::Duration;

use super::counter::Counter;
use super::event::Event;
use crate::cluster::access::{Exchange, PeerStatus};
use crate::table::Table;

crate::records!(ClusterStats, crate::records::define, Default);
crate::records!(PeerStats, crate::records::define);
crate::records!(ClusterEvent, crate::records::define, Copy);

impl ClusterStats {
    /// Returns `None` if no process has run the exchange yet.
    pub(crate) fn if_begun(table: &Table, now: u64) -> Option<ClusterStats> {
        Some(ClusterStats::of(table, now)).filter(|cluster| cluster.incarnation > 0)
    }

    pub(crate) fn of(table: &Table, now: u64) -> ClusterStats {
        let (incarnation, pid) = table.exchanger();
        let peers = table.peer_slots().map(|(peer_slot, origin)| {
            let PeerStatus { address, state, last_heard_ns, delay_ns, received, repaired, lost } =
                table.peer_status(peer_slot);
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
            // Zero if the table has never been part of a cluster.
            node: table.known_node_id(),
            incarnation,
            pid,
            peers: peers.collect(),
            counts: counts.map(|(index, name)| (name, table.counter(index))).collect(),
        }
    }

    /// Returns the count with this name, such as `reports_sent`, or zero if there is no such count.
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

/// Returns the stored events with a number greater than `number`, oldest first.
pub(crate) fn events_since(exchange: &Exchange, number: u64) -> Vec<ClusterEvent> {
    let now = exchange.now();
    let raw = exchange.events_since(number).into_iter();
    raw.map(|raw| ClusterEvent {
        number: raw.number,
        age: Duration::from_nanos(now.saturating_sub(raw.at_ns)),
        kind: Event::kind_name(raw.kind),
        node: raw.node,
        value: raw.value,
    })
    .collect()
}
