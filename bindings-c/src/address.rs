//! Parses and resolves the address of a daemon.

use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};

use dthrottle_core::Result;
use socket2::SockAddr;

use crate::ffi::bad;

/// Resolves an address. `None` is the default socket of the daemon. Looks up a host name.
pub(crate) fn resolve(address: Option<&str>) -> Result<SockAddr> {
    let invalid = |problem: &str| {
        bad(&format!(
            "`address` must be a path such as \"/run/dthrottled/dthrottled.sock\" or a host and a \
             port such as \"127.0.0.1:7373\", got {:?}, which {problem}",
            address.unwrap_or_default()
        ))
    };
    let path = match address {
        None => default_socket(),
        Some(address) if address.contains('/') => PathBuf::from(address),
        Some(address) => {
            let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
            if port.is_none_or(|port| port == 0) {
                return Err(invalid("is neither"));
            }
            let found = address.to_socket_addrs().ok().and_then(|mut found| found.next());
            return found.map(SockAddr::from).ok_or_else(|| invalid("is not found"));
        }
    };
    // The system would cut a path at a NUL.
    let path = Some(path).filter(|path| !path.as_os_str().as_encoded_bytes().contains(&0));
    let found = path.and_then(|path| SockAddr::unix(path).ok());
    found.ok_or_else(|| invalid("is too long for a socket or contains NUL"))
}

/// Returns the default socket of the daemon; see `docs/daemon.md`.
fn default_socket() -> PathBuf {
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|_| !is_root());
    let own = own.map(|folder| Path::new(&folder).join("dthrottled.sock"));
    own.filter(|own| own.exists()).unwrap_or_else(|| "/run/dthrottled/dthrottled.sock".into())
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_hosts_with_a_port_are_addresses() {
        assert!(resolve(Some("/tmp/x")).unwrap().is_unix());
        assert!(resolve(None).unwrap().is_unix());
        assert!(resolve(Some("127.0.0.1:7373")).unwrap().is_ipv4());
        assert!(resolve(Some("[::1]:7373")).unwrap().is_ipv6());
        assert!(resolve(Some("localhost:1")).is_ok());
        let long = "/x".repeat(200);
        for wrong in ["", "x", "x:", "127.0.0.1:0", "127.0.0.1:65536", "::1", "/a\0b", &long] {
            let error = resolve(Some(wrong)).unwrap_err().to_string();
            assert!(error.starts_with("`address` "), "{error}");
        }
    }
}
