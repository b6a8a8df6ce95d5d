//! Conversion between the addresses of the engine and those of a socket. An IPv6 socket that also
//! serves IPv4 sees IPv4 addresses as IPv4-mapped IPv6 addresses; the engine never does.

use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};

/// The addresses that a socket can send to, determined by the address to which it is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketFamily {
    /// IPv4 addresses of this host.
    Loopback,
    /// IPv4 addresses.
    V4,
    /// IPv6 addresses.
    V6,
    /// IPv6 addresses, and IPv4 addresses in mapped form.
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

    /// Returns the address in the form that the socket needs, or `None` if the socket cannot send
    /// to it. This check avoids system calls, and errors that look like a failure of segmentation
    /// offload, after which the socket would stop using it.
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

/// Returns the local address from which `towards` is reached. Without `towards`, returns the local
/// address of the default route. Sends nothing.
pub(crate) fn local_address(towards: Option<SocketAddr>, bound: SocketAddr) -> IpAddr {
    // Addresses reserved for documentation. Connecting a UDP socket only selects a route.
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

/// Returns the address in the form that the engine uses: IPv4-mapped addresses become IPv4
/// addresses, and the flow label is removed.
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
    fn a_dual_stack_socket_maps_ipv4_addresses() {
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
    fn map_destination_returns_none_for_unreachable_addresses() {
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
