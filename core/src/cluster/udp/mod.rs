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
#[cfg(target_os = "linux")]
mod life;
mod multicast;
mod names;
mod outbox;
mod port;
mod socket;
mod stop;

pub use background::Background;
pub use driver::{Driven, Setup};
pub use hooks::{Counters, FdHook, Hooks, Tally};
pub use inbox::Inbox;
#[cfg(target_os = "linux")]
pub(crate) use life::Life;
pub use multicast::Group;
pub use outbox::Outbox;
pub use socket::Socket;
