//! The exchange with a cluster: starting it, who is in it, what was counted and what happened.

use std::ffi::c_char;

use crate::ffi::{Flag, Grows, bad, chars, ns};
use crate::throttle::Throttle;

/// A cluster, as seen from one node. Begin with DTHROTTLE_CLUSTER_STATS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ClusterStats {
    /// sizeof(dthrottle_cluster_stats_t).
    pub size: usize,
    /// Whether the throttle belongs to a cluster at all. If not, the rest is 0.
    pub in_cluster: Flag,
    /// This node.
    pub node: u64,
    /// The present life of its exchange; 0: it has not begun.
    pub incarnation: u64,
    /// The process that runs the exchange, or did last.
    pub pid: u64,
    /// How many peers are there or were lately, for dthrottle_cluster_peer().
    pub peer_count: u64,
}

/// A peer, as seen from one node. Begin with DTHROTTLE_PEER_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Peer {
    /// sizeof(dthrottle_peer_t).
    pub size: usize,
    /// Which node.
    pub node: u64,
    /// In which life.
    pub incarnation: u64,
    /// Where it is, as "host:port"; empty: that is not known.
    pub address: [c_char; 64],
    /// "up", "down", "left", or "known" if it has yet to become a member.
    pub state: [c_char; 16],
    /// How long ago it was last heard.
    pub age_ns: u64,
    /// How long a datagram takes.
    pub delay_ns: u64,
    /// Reports applied.
    pub received: u64,
    /// Those of them that had been missing at first.
    pub repaired: u64,
    /// Reports that are lost for good.
    pub lost: u64,
}

/// Something that happened in a cluster. Begin with DTHROTTLE_EVENT_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Event {
    /// sizeof(dthrottle_event_t).
    pub size: usize,
    /// Counts events, from 1.
    pub number: u64,
    /// How long ago it happened.
    pub age_ns: u64,
    /// "peer_up", "peer_down", "peer_left", "rules_differ", "reports_lost" or "warm_start".
    pub kind: [c_char; 32],
    /// The peer it is about.
    pub node: u64,
    /// How many, where that matters.
    pub value: u64,
}

/// Starts the exchange with the cluster in this process, unless it has started: otherwise the
/// first check does. Without a cluster there is nothing to start.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_start(throttle: *const Throttle) -> i32 {
    guard!(|c| c.handle(throttle)?.core.start())
}

/// Ends the exchange in this process for good, and waits for nothing: another process of the table
/// goes on with it. Checks go on as before. For processes that only finish what they have begun,
/// such as the old workers of a server that has read its configuration again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_stop(throttle: *const Throttle) -> i32 {
    guard!(|c| {
        c.handle(throttle)?.core.stop();
        Ok(())
    })
}

/// The cluster, as this node sees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_cluster_stats(
    throttle: *const Throttle,
    stats: *mut ClusterStats,
) -> i32 {
    guard!(|c| {
        let room = c.room(stats)?;
        room.fill(c.handle(throttle)?.core.cluster_stats().into());
        Ok(())
    })
}

/// What the node counted under a name, such as "reports_sent", "reports_received",
/// "reports_lost", "bytes_sent", or "dropped_auth" for datagrams under another key.
/// DTHROTTLE_ERR_ARGUMENT if nothing is counted under this name, as without a cluster.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_cluster_count(
    throttle: *const Throttle,
    name: *const c_char,
    name_len: usize,
    value: *mut u64,
) -> i32 {
    guard!(|c| {
        c.store(value, 0)?;
        let name = c.text(name, name_len)?;
        let stats = c.handle(throttle)?.core.cluster_stats().unwrap_or_default();
        let found = stats.counts.iter().find(|(known, _)| *known == name);
        let (_, count) = found.ok_or_else(|| bad("nothing is counted under this name"))?;
        c.store(value, *count)
    })
}

/// A peer by its index from 0. DTHROTTLE_ERR_ARGUMENT if there is none, which ends a loop: peers
/// come and go between two calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_cluster_peer(
    throttle: *const Throttle,
    index: usize,
    peer: *mut Peer,
) -> i32 {
    guard!(|c| {
        let room = c.room(peer)?;
        let stats = c.handle(throttle)?.core.cluster_stats().unwrap_or_default();
        let found = stats.peers.get(index).ok_or_else(|| bad("no peer has this index"))?;
        room.fill(found.into());
        Ok(())
    })
}

/// What happened in the cluster after the event with the number after, oldest first, as far as it
/// is still known: begin with 0, and go on with the number of the last one. events has room for so
/// many, each as large as the first one's size says; count gets how many were written. Fewer than
/// room: there are no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_events(
    throttle: *const Throttle,
    after: u64,
    events: *mut Event,
    room: usize,
    count: *mut usize,
) -> i32 {
    guard!(|c| {
        c.store(count, 0)?;
        let rooms = c.rooms(events, room)?;
        let found = c.handle(throttle)?.core.events(after);
        let written = rooms.zip(&found).map(|(room, event)| room.fill(event.into())).count();
        c.store(count, written)
    })
}

impl From<Option<dthrottle_core::ClusterStats>> for ClusterStats {
    fn from(found: Option<dthrottle_core::ClusterStats>) -> ClusterStats {
        let in_cluster = found.is_some().into();
        let stats = found.unwrap_or_default();
        ClusterStats {
            size: ClusterStats::FIRST,
            in_cluster,
            node: stats.node,
            incarnation: stats.incarnation,
            pid: stats.pid,
            peer_count: stats.peers.len() as u64,
        }
    }
}

impl From<&dthrottle_core::PeerStats> for Peer {
    fn from(peer: &dthrottle_core::PeerStats) -> Peer {
        let address = peer.address.map(|address| address.to_string());
        Peer {
            size: Peer::FIRST,
            node: peer.node,
            incarnation: peer.incarnation,
            address: chars(&address.unwrap_or_default()),
            state: chars(peer.state),
            age_ns: ns(peer.age),
            delay_ns: ns(peer.delay),
            received: peer.received,
            repaired: peer.repaired,
            lost: peer.lost,
        }
    }
}

impl From<&dthrottle_core::ClusterEvent> for Event {
    fn from(event: &dthrottle_core::ClusterEvent) -> Event {
        Event {
            size: Event::FIRST,
            number: event.number,
            age_ns: ns(event.age),
            kind: chars(event.kind),
            node: event.node,
            value: event.value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_fits() {
        let longest = "[1111:2222:3333:4444:5555:6666:7777:8888%4294967295]:65535";
        let address: std::net::SocketAddr = longest.parse().unwrap();
        assert_eq!(address.to_string(), longest);
        let chars: [c_char; 64] = chars(longest);
        let end = chars.iter().position(|c| *c == 0).unwrap();
        assert_eq!(end, longest.len());
    }

    #[test]
    fn a_text_is_cut_and_ends_with_nul() {
        assert_eq!(chars::<4>("abcdef"), [97, 98, 99, 0]);
        assert_eq!(chars::<4>("a"), [97, 0, 0, 0]);
        assert_eq!(chars::<1>("a"), [0]);
    }
}
