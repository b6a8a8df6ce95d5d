//! Parses addresses such as `"10.0.0.1:7373"`, `"[fd00::1]:7373"` and `"db.example.com"`.
//!
//! IPv4-mapped IPv6 addresses become IPv4 addresses, so that checks cannot be bypassed by spelling.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::limit::rate::quoted;

/// The default port of a cluster.
pub(super) const PORT: u16 = 7373;

const MAX_HOST_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

/// A peer by address or by host name. A host name may resolve to several addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerName {
    /// An address or a host name. An IPv6 address has no brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// Parses an IP address with a port.
pub(super) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map(canonical).map_err(|_| {
        let text = quoted(text);
        format!(
            r#"must be an address with a port such as "10.0.0.1:7373" or "[fd00::1]:7373", got {text}"#
        )
    })
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl PeerName {
    /// Parses `host:port` or `host`.
    pub(super) fn parse(text: &str) -> Result<PeerName, String> {
        let fault = |reason: &str| {
            let text = quoted(text);
            format!(
                r#"must be "host:port" or "host", such as "10.0.0.1:7373" or "[fd00::1]:7373", got {text}: {reason}"#
            )
        };
        if text.starts_with('[') {
            let address = text.parse().or_else(|_| format!("{text}:{PORT}").parse());
            let address = address.map_err(|_| fault("brackets need an IPv6 address"))?;
            return PeerName::from(canonical(address)).with_port().map_err(fault);
        }
        let (host, port) = match text.split_once(':') {
            None => (text, PORT),
            Some((_, port)) if port.contains(':') => {
                return Err(fault("an IPv6 address needs brackets"));
            }
            Some((host, port)) => {
                (host, parse_port(port).ok_or_else(|| fault("a port is a number from 1 to 65535"))?)
            }
        };
        if host.parse::<IpAddr>().is_err() {
            check_host(host).map_err(fault)?;
        }
        PeerName { host: host.into(), port }.with_port().map_err(fault)
    }

    fn with_port(self) -> Result<PeerName, &'static str> {
        if self.port == 0 { Err("a port is a number from 1 to 65535") } else { Ok(self) }
    }

    /// Returns the address, or `None` for a host name.
    pub(super) fn ip(&self) -> Option<IpAddr> {
        let host = self.host.split('%').next().unwrap_or(&self.host);
        host.parse().ok()
    }

    /// Whether the peer is certainly on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let named = self.host.eq_ignore_ascii_case("localhost");
        self.ip().map_or(named, |ip| ip.is_loopback())
    }
}

impl From<SocketAddr> for PeerName {
    fn from(address: SocketAddr) -> PeerName {
        let scope = match address {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("%{}", v6.scope_id()),
            _ => String::new(),
        };
        PeerName { host: format!("{}{scope}", address.ip()), port: address.port() }
    }
}

/// Returns a message if datagrams from one address can never reach the other.
pub(super) fn unreachable_reason(from: IpAddr, to: IpAddr) -> Option<String> {
    let both = from == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    if from.is_ipv4() != to.is_ipv4() && !both {
        Some(format!(r#"must be reachable from {from}, got {to}; listen on "[::]:{PORT}""#))
    } else if from.is_loopback() && !to.is_loopback() && !to.is_multicast() {
        Some(format!("must be reachable from {from}, got {to}; listen on another address"))
    } else {
        None
    }
}

/// Whether this is not the address of a single machine: unspecified, multicast or broadcast.
pub(super) fn is_unassignable(ip: IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    ip.is_unspecified() || ip.is_multicast() || broadcast
}

fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        // Keep the scope of a link-local address.
        IpAddr::V6(_) => address,
    }
}

fn parse_port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

fn check_host(host: &str) -> Result<(), &'static str> {
    let labels = || host.strip_suffix('.').unwrap_or(host).split('.');
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let good = |label: &str| {
        (1..=MAX_LABEL_BYTES).contains(&label.len())
            && label.chars().all(plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // Resolvers read "127.1", "2130706433" and "0x7f000001" as addresses, so they are not names.
    let number = |label: &str| {
        let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
        match hex {
            Some(digits) => digits.chars().all(|c| c.is_ascii_hexdigit()),
            None => label.chars().all(|c| c.is_ascii_digit()),
        }
    };
    if host.len() > MAX_HOST_BYTES || !labels().all(good) {
        Err("a host name has only letters, digits, - and .")
    } else if labels().next_back().is_some_and(number) {
        Err("an IPv4 address has four numbers from 0 to 255")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_splits_a_peer_into_host_and_port() {
        for (text, host, port) in [
            ("10.0.0.1", "10.0.0.1", 7373),
            ("10.0.0.1:80", "10.0.0.1", 80),
            ("[fd00::1]", "fd00::1", 7373),
            ("[fd00::1]:80", "fd00::1", 80),
            ("[fe80::1%3]:80", "fe80::1%3", 80),
            ("[::ffff:10.0.0.1]:80", "10.0.0.1", 80),
            ("node-1.example.com", "node-1.example.com", 7373),
            ("a_b.example.:65535", "a_b.example.", 65535),
            ("0xyz", "0xyz", 7373),
        ] {
            let peer = PeerName::parse(text).unwrap();
            assert_eq!((peer.host.as_str(), peer.port), (host, port), "{text}");
        }
    }

    #[test]
    fn parse_rejects_malformed_peers() {
        for text in [
            "",
            ":80",
            "a:",
            "a:0",
            "a:65536",
            "a:+80",
            "a: 80",
            "fd00::1",
            "::1:7373",
            "[::1",
            "[::1]80",
            "[::1]:0",
            "[10.0.0.1]:80",
            "[]:80",
            "a b",
            "a..b",
            "-a",
            "a-",
            "grün.de",
            "a/b",
            "10.0.0",
            "10.0.0.256",
            "127.1",
            "0x7f000001",
            "2130706433",
            "10.0.0.1.",
        ] {
            assert!(PeerName::parse(text).is_err(), "{text}");
        }
        assert!(PeerName::parse(&"a".repeat(64)).is_err());
        assert!(PeerName::parse(&["a"; 127].join(".")).is_ok());
        assert!(PeerName::parse(&["a"; 128].join(".")).is_err());
    }

    #[test]
    fn is_loopback_recognizes_every_spelling() {
        for text in ["127.0.0.1", "127.9.9.9:1", "[::1]", "[::ffff:127.0.0.1]", "LocalHost:80"] {
            assert!(PeerName::parse(text).unwrap().is_loopback(), "{text}");
        }
        for text in ["10.0.0.1", "[::ffff:10.0.0.1]", "[::127.0.0.1]", "localhost.example.com"] {
            assert!(!PeerName::parse(text).unwrap().is_loopback(), "{text}");
        }
        assert!(parse_address("[::ffff:127.0.0.1]:1").unwrap().ip().is_loopback());
    }

    #[test]
    fn parse_address_keeps_the_scope() {
        let address = parse_address("[fe80::1%3]:80").unwrap();
        assert_eq!(address.to_string(), "[fe80::1%3]:80");
        for text in ["", "10.0.0.1", ":80", "localhost:80", "10.0.0.1:65536", "fd00::1:80"] {
            assert!(parse_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn unreachable_reason_compares_ip_version_and_loopback() {
        let reaches = |from: &str, to: &str| {
            unreachable_reason(from.parse().unwrap(), to.parse().unwrap()).is_none()
        };
        assert!(reaches("0.0.0.0", "10.0.0.1") && reaches("10.0.0.2", "127.0.0.1"));
        assert!(reaches("::", "10.0.0.1") && reaches("::", "fd00::1") && reaches("::1", "::1"));
        assert!(!reaches("0.0.0.0", "fd00::1") && !reaches("fd00::1", "10.0.0.1"));
        assert!(!reaches("127.0.0.1", "10.0.0.1") && !reaches("127.0.0.1", "::1"));
        assert!(reaches("127.0.0.1", "239.1.2.3"), "a group on the loopback interface");
    }
}
