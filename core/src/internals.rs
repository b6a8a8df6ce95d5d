//! Items besides the public API that the simulator, the fuzzers, the benchmarks, the WebAssembly
//! package and this crate's own tests use. They may change in any version.

use crate::Throttle;

/// The throttle's table as the exchange uses it.
pub fn exchange(throttle: &Throttle) -> access::Exchange {
    throttle.exchange()
}

/// The engine of the throttle's node, for hosts that carry the datagrams themselves, or `None` if
/// the throttle is in no cluster. `seed` must be random, and `incarnation` greater than that of
/// earlier engines.
pub fn engine(throttle: &Throttle, seed: u64, incarnation: u64) -> Option<cluster::Engine> {
    let exchange = throttle.exchange();
    let (now, node) = (exchange.now(), throttle.node()?);
    let mut engine = cluster::Engine::new(node.settings(), exchange, seed, incarnation, now);
    if let Some(payload) = node.payload() {
        engine.set_payload(payload);
    }
    Some(engine)
}

/// The bytes and the slots of the throttle's table.
pub fn table_size(throttle: &Throttle) -> (usize, usize) {
    let table = &throttle.host().table;
    (table.bytes(), table.slots())
}

/// The exchange between nodes, sans-IO.
pub mod cluster {
    pub use crate::cluster::{
        Counter, Engine, Event, MAX_PAYLOAD, MAX_PEER_ADDR, Mechanisms, Origin, Output, Payload,
        PeerAddr, PeerState, Ranges, ReportStatus, Settings, To, Transmit, Window, rounded_slack,
        wire,
    };
}

/// The encoding of busy responses that nodes send to each other.
#[cfg(feature = "busy")]
pub mod busy {
    pub use crate::busy::wire::{BusyEntry, MAX_ENTRIES, parse_busy, write_busy};
}

/// The bucket table as the exchange uses it.
pub mod access {
    pub use crate::cluster::access::*;
}

/// The exchange on UDP sockets.
#[cfg(unix)]
pub mod udp {
    pub use crate::cluster::udp::*;
}
