//! The driver of the exchange: sockets, the thread that they live in, and names to addresses.
//!
//! It runs an engine (`cluster/`) and knows nothing of what it says. Nothing here may ever end or
//! block the process: whatever fails is counted and tried again. With `os/` it is the only place
//! with sockets and threads (`core/clippy.toml`).
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this is the place")]

mod address;
mod background;
mod backoff;
mod driven;
mod driver;
mod hooks;
mod inbox;
mod multicast;
mod names;
#[cfg(target_os = "linux")]
mod node_thread;
mod outbox;
mod port;
mod socket;
mod stop;

pub use background::Background;
pub use driven::Driven;
pub use driver::Setup;
pub use hooks::{Counters, FdHook, Hooks, Tally};
pub use inbox::Inbox;
pub use multicast::Group;
#[cfg(target_os = "linux")]
pub(crate) use node_thread::NodeThread;
pub use outbox::Outbox;
pub use socket::Socket;
