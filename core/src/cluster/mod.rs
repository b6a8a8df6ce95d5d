//! The exchange: nodes tell each other what they admitted, and all buckets converge.
//!
//! All but `udp/` is without IO: time, randomness and datagrams come in as arguments, and datagrams
//! to send are returned. `udp/` runs it on sockets, `sim/` in virtual time, and the hosts of
//! WebAssembly by their own means. The protocol is in docs/protocol.md.
//!
//! It reaches the buckets through `access/` only, and uses the checked configuration. Only `udp/`
//! uses `os/`.

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
