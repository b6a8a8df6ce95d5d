//! Addresses as the engine knows them, and as a socket needs them: a socket for IPv6 that also
//! serves IPv4 sees its addresses in a disguise, which ends here.

use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};

/// What a socket bound to an address can send to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketFamily {
    /// This host, by IPv4.
    Loopback,
    V4,
    V6,
    Both,
}

impl SocketFamily {
    pub(crate) fn of(bound: IpAddr) -> SocketFamily {
        match bound {
            IpAddr::V4(ip) if ip.is_loopback() => SocketFamily::Loopback,
            IpAddr::V4(_) => SocketFamily::V4,
            IpAddr::V6(ip) if ip.is_unspecified() => SocketFamily::Both,
            IpAddr::V6(_) => SocketFamily::V6,
        }
    }

    /// The address as the socket needs it, if it can be sent to at all. To ask here first is not
    /// only cheaper: the system refuses most of these in the same words as segments that it cannot
    /// send, and then the socket gives up on segments for good.
    pub(crate) fn map_destination(self, to: SocketAddr) -> Option<SocketAddr> {
        if to.port() == 0 || to.ip().is_unspecified() {
            return None;
        }
        match (self, to) {
            (SocketFamily::Loopback, SocketAddr::V4(v4)) => {
                (v4.ip().is_loopback() || v4.ip().is_multicast()).then_some(to)
            }
            (SocketFamily::V4, SocketAddr::V4(_))
            | (SocketFamily::V6 | SocketFamily::Both, SocketAddr::V6(_)) => Some(to),
            (SocketFamily::Both, SocketAddr::V4(to)) => {
                Some(SocketAddr::new(to.ip().to_ipv6_mapped().into(), to.port()))
            }
            _ => None,
        }
    }
}

/// The address of this machine from which one is reached; without one, from which most are. Sends
/// nothing.
pub(crate) fn local_address(towards: Option<SocketAddr>, bound: SocketAddr) -> IpAddr {
    // Addresses that belong to nobody: all the system has to know is where the way begins.
    let (any, nobody) = match bound {
        SocketAddr::V4(_) => (([0; 4], 0).into(), ([192, 0, 2, 1], 9).into()),
        SocketAddr::V6(_) => (([0; 16], 0).into(), ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 9).into()),
    };
    let (any, towards): (SocketAddr, SocketAddr) = match towards {
        Some(v4 @ SocketAddr::V4(_)) => (([0; 4], 0).into(), v4),
        Some(v6) => (([0; 16], 0).into(), v6),
        None => (any, nobody),
    };
    let found = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(towards)?;
        socket.local_addr()
    });
    match (found, bound) {
        (Ok(found), _) if !found.ip().is_unspecified() => found.ip(),
        (_, SocketAddr::V4(_)) => IpAddr::from([127, 0, 0, 1]),
        (_, SocketAddr::V6(_)) => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
    }
}

/// An address as the engine knows it.
pub(crate) fn canonical_address(from: SocketAddr) -> SocketAddr {
    match (from.ip().to_canonical(), from) {
        (IpAddr::V6(ip), SocketAddr::V6(from)) => {
            SocketAddrV6::new(ip, from.port(), 0, from.scope_id()).into()
        }
        (ip, _) => SocketAddr::new(ip, from.port()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_socket_for_both_sees_ipv4_in_disguise() {
        let family = SocketFamily::of("::".parse().unwrap());
        let mapped = family.map_destination(address("192.0.2.7:9")).unwrap();
        assert_eq!(mapped, address("[::ffff:192.0.2.7]:9"));
        assert_eq!(canonical_address(mapped), address("192.0.2.7:9"));
        assert_eq!(
            family.map_destination(address("[2001:db8::1]:9")),
            Some(address("[2001:db8::1]:9"))
        );
        assert_eq!(canonical_address(address("[2001:db8::1]:9")), address("[2001:db8::1]:9"));
        assert_eq!(canonical_address(address("[fe80::1%3]:9")), address("[fe80::1%3]:9"));
    }

    #[test]
    fn what_a_socket_cannot_send_to_is_refused() {
        for (bound, good, bad) in [
            ("127.0.0.1", "127.0.0.2:9", "192.0.2.7:9"),
            ("127.0.0.1", "239.1.2.3:9", "[::1]:9"),
            ("192.0.2.1", "192.0.2.7:9", "[::1]:9"),
            ("0.0.0.0", "127.0.0.1:9", "127.0.0.1:0"),
            ("::1", "[::1]:9", "127.0.0.1:9"),
            ("::1", "[ff02::1]:9", "[::1]:0"),
            ("::", "[::1]:9", "[::]:9"),
        ] {
            let family = SocketFamily::of(bound.parse().unwrap());
            assert_eq!(family.map_destination(address(good)), Some(address(good)), "{bound}");
            assert_eq!(family.map_destination(address(bad)), None, "{bound} {bad}");
        }
    }
}
