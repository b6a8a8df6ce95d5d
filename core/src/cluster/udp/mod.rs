//! The driver of the exchange: sockets, the thread that uses them, and name resolution.
//!
//! It runs an engine and does not interpret its datagrams. Nothing here may end or block the
//! process: every failure is counted and retried. Besides `os/`, this is the only module that uses
//! sockets and threads (`core/clippy.toml`).
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the driver uses sockets and threads"
)]

mod address;
mod background;
mod backoff;
mod driver;
mod hooks;
mod inbox;
mod managed_socket;
mod multicast;
#[cfg(target_os = "linux")]
mod node_thread;
mod outbox;
mod resolver;
mod socket;
mod stop;
mod udp_engine;

pub use background::Background;
pub use driver::DriverConfig;
pub use hooks::{ErrorCounter, ErrorCounters, FdHook, Hooks};
pub use inbox::Inbox;
pub use multicast::MulticastGroup;
#[cfg(target_os = "linux")]
pub(crate) use node_thread::NodeThread;
pub use outbox::Outbox;
pub use socket::Socket;
pub use udp_engine::UdpEngine;
