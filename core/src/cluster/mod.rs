//! The exchange: nodes tell each other what they admitted, and all buckets converge.
//!
//! Everything here is sans-IO: time, randomness and datagrams come in as arguments, and what is to
//! be sent is handed out. `net/` runs it on sockets, `sim/` in virtual time, and the hosts of
//! WebAssembly by their own means. The protocol is in docs/protocol.md.

pub(crate) mod access;
mod counter;
mod engine;
mod event;
mod history;
mod members;
pub(crate) mod node;
pub(crate) mod pace;
mod peer;
mod replay;
mod settings;
mod slack;
mod stats;
#[cfg(all(feature = "os", unix))]
pub(crate) mod udp;
mod window;
pub mod wire;

pub use counter::Counter;
pub use engine::{Engine, Output, To, Transmit};
pub use event::Event;
pub use peer::State;
pub use settings::{Controls, Settings};
pub use slack::rounded as rounded_slack;
pub(crate) use stats::events_since;
pub use stats::{ClusterEvent, ClusterStats, PeerStats};
pub use window::{Ranges, Verdict, Window};

/// One life of a node's exchange: whose reports they are, and which numbers they have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The node: the same for all processes of a table, as long as the table is there.
    pub node: u64,
    /// Later lives have greater numbers.
    pub incarnation: u64,
}
