//! The exchange with a cluster: starting it, who is in it, what was counted and what happened.

use std::ffi::c_char;

use crate::ffi::bad;
use crate::records::{ClusterStats, Event, Peer};
use crate::throttle::Throttle;

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
        let out = c.out_struct(stats)?;
        let stats = c.handle(throttle)?.core.cluster_stats();
        let in_cluster = stats.is_some();
        out.fill(ClusterStats::of(&stats.unwrap_or_default(), in_cluster));
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
        let out = c.out_struct(peer)?;
        let stats = c.handle(throttle)?.core.cluster_stats().unwrap_or_default();
        let found = stats.peers.get(index).ok_or_else(|| bad("no peer has this index"))?;
        out.fill(Peer::of(found));
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
    capacity: usize,
    count: *mut usize,
) -> i32 {
    guard!(|c| {
        c.store(count, 0)?;
        let outs = c.out_structs(events, capacity)?;
        let found = c.handle(throttle)?.core.events(after);
        let written = outs.zip(&found).map(|(out, event)| out.fill(Event::of(event))).count();
        c.store(count, written)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::chars;

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
