//! The exchange between nodes: each node reports what it admitted, and the buckets of all nodes
//! converge.
//!
//! Everything except `udp/` is sans-IO: time, randomness and received datagrams are arguments, and
//! datagrams to send are return values. `udp/` runs the engine on sockets, `sim/` runs it in
//! virtual time, and WebAssembly hosts supply their own transport. `docs/protocol.md` describes the
//! protocol.
//!
//! This module accesses buckets only through `access/` and takes a checked configuration. Only
//! `udp/` uses `os/`.

pub(crate) mod access;
mod counter;
mod engine;
mod event;
mod history;
mod members;
#[cfg(not(target_os = "linux"))]
mod no_thread;
pub(crate) mod node;
pub(crate) mod pace;
pub(crate) mod payload;
mod peer;
mod peer_addr;
mod replay;
mod settings;
mod slack;
mod stats;
mod throttle;
#[cfg(unix)]
pub(crate) mod udp;
pub mod wire;

pub(crate) use crate::table::window;
pub use crate::table::window::{Origin, Ranges, ReportStatus, Window};
pub use counter::Counter;
pub use engine::{Engine, Output, To, Transmit};
pub use event::Event;
pub use payload::{MAX_PAYLOAD, Payload};
pub use peer::PeerState;
pub use peer_addr::{MAX_PEER_ADDR, PeerAddr};
pub use settings::{Mechanisms, Settings};
pub use slack::rounded as rounded_slack;
pub(crate) use stats::events_since;
pub use stats::{ClusterEvent, ClusterStats, PeerStats};
