//! The driver of the exchange: sockets, the thread that they live in, and names to addresses.
//!
//! It runs an engine (`cluster/`) and knows nothing of what it says. Nothing here may ever end or
//! block the process: whatever fails is counted and tried again. With `os/` it is the only place
//! with sockets and threads (`core/clippy.toml`).
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this is the place")]

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
