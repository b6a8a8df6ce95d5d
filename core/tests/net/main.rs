//! The driver on real sockets of this host: IPv4, IPv6 and multicast, all on the loopback
//! interface.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real sockets")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod fork;
mod multicast;

mod repair;
mod sockets;
mod test_engine;
mod test_node;
mod thread;
