//! What the simulator, the fuzzers, the benchmarks, the WebAssembly package and this crate's own
//! tests use besides the public API. It may change in any version.

/// The exchange between nodes, sans-IO.
pub mod cluster {
    pub use crate::cluster::{
        Counter, Engine, Event, MAX_PEER_ADDR, Mechanisms, Origin, Output, PeerAddr, Ranges,
        Settings, State, To, Transmit, Verdict, Window, rounded_slack, wire,
    };
}

/// The bucket table as the exchange sees it.
pub mod access {
    pub use crate::cluster::access::*;
}

/// The exchange on UDP sockets.
#[cfg(unix)]
pub mod udp {
    pub use crate::cluster::udp::*;
}
