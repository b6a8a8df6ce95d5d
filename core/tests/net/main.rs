//! The driver with real sockets on this host: IPv4, IPv6 and multicast on the loopback interface.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests use real sockets")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod fork;
mod multicast;

mod repair;
mod sockets;
mod test_engine;
mod test_node;
mod thread;
