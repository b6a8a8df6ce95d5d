//! The exchange with a cluster: start and stop, statistics, peers and events.

use std::ffi::c_char;

use crate::ffi::bad;
use crate::records::{ClusterStats, Event, Peer};
use crate::throttle::Throttle;

/// Starts the exchange with the cluster in this process. Without this call the first check starts
/// it. Does nothing without a cluster, or if the exchange runs already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_start(throttle: *const Throttle) -> i32 {
    guard!(|c| c.handle(throttle)?.core.start())
}

/// Ends the exchange in this process permanently, without waiting. Another process of the table
/// continues it. Checks work as before. For processes that only finish their current requests, such
/// as the old workers of a server after a reload.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_stop(throttle: *const Throttle) -> i32 {
    guard!(|c| {
        c.handle(throttle)?.core.stop();
        Ok(())
    })
}

/// Returns the state of the cluster, as seen from this node.
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

/// Returns a counter of the node by its name, such as "reports_sent", "reports_received",
/// "reports_lost", "bytes_sent", or "dropped_auth" for datagrams with another key. Returns
/// DTHROTTLE_ERR_ARGUMENT if there is no such counter, and without a cluster.
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
        let (_, count) = found.ok_or_else(|| bad("there is no counter of this name"))?;
        c.store(value, *count)
    })
}

/// Returns a peer by its index from 0. Returns DTHROTTLE_ERR_ARGUMENT after the last one, which
/// ends a loop. The number of peers may change between two calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_cluster_peer(
    throttle: *const Throttle,
    index: usize,
    peer: *mut Peer,
) -> i32 {
    guard!(|c| {
        let out = c.out_struct(peer)?;
        let stats = c.handle(throttle)?.core.cluster_stats().unwrap_or_default();
        let found =
            stats.peers.get(index).ok_or_else(|| bad("there is no peer with this index"))?;
        out.fill(Peer::of(found));
        Ok(())
    })
}

/// Writes the events of the cluster after the event with the number after, the oldest first. Begin
/// with 0, and continue with the number of the last event. The library keeps only the latest
/// events. events is an array of capacity structs, all of the size that the first one states. count
/// receives the number of structs written; if it is below capacity, there are no more events.
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
    fn the_longest_address_fits_into_64_bytes() {
        let longest = "[1111:2222:3333:4444:5555:6666:7777:8888%4294967295]:65535";
        let address: std::net::SocketAddr = longest.parse().unwrap();
        assert_eq!(address.to_string(), longest);
        let chars: [c_char; 64] = chars(longest);
        let end = chars.iter().position(|c| *c == 0).unwrap();
        assert_eq!(end, longest.len());
    }

    #[test]
    fn a_long_text_is_cut_and_ends_with_nul() {
        assert_eq!(chars::<4>("abcdef"), [97, 98, 99, 0]);
        assert_eq!(chars::<4>("a"), [97, 0, 0, 0]);
        assert_eq!(chars::<1>("a"), [0]);
    }
}
