//! The exchange: nodes tell each other what they admitted, and all buckets converge.
//!
//! Everything here is sans-IO: time, randomness and datagrams come in as arguments, and what is to
//! be sent is handed out. `udp/` runs it on sockets, `sim/` in virtual time, and the hosts of
//! WebAssembly by their own means. The protocol is in docs/protocol.md.

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
pub use crate::table::window::{Origin, Ranges, Verdict, Window};
pub use counter::Counter;
pub use engine::{Engine, Output, To, Transmit};
pub use event::Event;
pub use payload::{MAX_PAYLOAD, Payload};
pub use peer::State;
pub use peer_addr::{MAX_PEER_ADDR, PeerAddr};
pub use settings::{Mechanisms, Settings};
pub use slack::rounded as rounded_slack;
pub(crate) use stats::events_since;
pub use stats::{ClusterEvent, ClusterStats, PeerStats};
