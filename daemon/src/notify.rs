//! Reports the state of the daemon to systemd (sd_notify): a datagram to the socket in
//! NOTIFY_SOCKET.

use std::env;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::time::{ClockId, clock_gettime};

pub(crate) fn ready() {
    send("READY=1");
}

pub(crate) fn stopping() {
    send("STOPPING=1");
}

/// The reload ends with `ready`.
pub(crate) fn reloading() {
    let now = clock_gettime(ClockId::Monotonic);
    send(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1_000_000 + now.tv_nsec / 1000));
}

/// Sends nothing if NOTIFY_SOCKET is not set.
fn send(message: &str) {
    let Some(name) = env::var_os("NOTIFY_SOCKET") else { return };
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&name),
    };
    let sent = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!(%error, "cannot notify systemd");
    }
}
