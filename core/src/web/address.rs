//! The address of a client. Parses all spellings, finds the client behind trusted proxies, and
//! returns the address (of IPv6, a prefix) as a tag that clients cannot forge.
//!
//! `docs/http.md` has the rules, and `tests/vectors/addresses.json` the test cases.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::networks::Networks;

/// The first 96 bits of IPv6 addresses that have an IPv4 address in their last 32 bits: IPv4-mapped
/// addresses, and those of NAT64 (RFC 6052).
const MAPPED: u128 = 0xFFFF;
const NAT64: u128 = 0x0064_FF9B << 64;

/// Which proxies to trust. Each trusted proxy has added an entry to `X-Forwarded-For`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trusted {
    /// The number of proxies in front of the application. Each adds one entry.
    Count(usize),
    /// The networks of the proxies.
    Networks(Networks),
}

/// Finds the address of a client behind trusted proxies.
///
/// ```
/// use dthrottle::web::{ClientAddress, Trusted};
///
/// let finder = ClientAddress::new(Trusted::Count(1), 64);
/// let client = finder.find(Some("10.0.0.1"), &["198.51.100.9, 203.0.113.7"]).unwrap();
/// assert_eq!(client.to_string(), "203.0.113.7");
/// assert_eq!(finder.tag(client).as_ref(), [203, 0, 113, 7]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAddress {
    trusted: Trusted,
    /// Clears the bits of an IPv6 address after the prefix.
    ipv6_mask: u128,
}

impl ClientAddress {
    /// Creates a finder. `ipv6_prefix` is the number of leading bits of an IPv6 address that
    /// identify a client, from 1 to 128.
    pub fn new(trusted: Trusted, ipv6_prefix: u32) -> ClientAddress {
        ClientAddress { trusted, ipv6_mask: mask(ipv6_prefix) }
    }

    /// Whether `find` reads `X-Forwarded-For`.
    pub fn reads_forwarded(&self) -> bool {
        match &self.trusted {
            Trusted::Count(count) => *count > 0,
            Trusted::Networks(networks) => !networks.is_empty(),
        }
    }

    /// Returns the client's address, or `None` if it is unknown. `forwarded` has the lines of
    /// `X-Forwarded-For`, in their order.
    pub fn find(&self, peer: Option<&str>, forwarded: &[&str]) -> Option<IpAddr> {
        let peer = peer.and_then(parse_address);
        // From the nearest proxy outwards, without empty entries.
        let lines = forwarded.iter().rev();
        let entries = lines.flat_map(|line| line.rsplit(',')).filter(|entry| !is_blank(entry));
        match &self.trusted {
            // Entries that are not addresses are ignored.
            Trusted::Count(count) => {
                let trusted = entries.take(*count).filter_map(parse_address);
                trusted.last().or(peer)
            }
            Trusted::Networks(networks) => networks.find(peer, entries),
        }
    }

    /// Returns the tag of an address.
    pub fn tag(&self, address: IpAddr) -> AddressTag {
        masked(address, self.ipv6_mask)
    }
}

/// Returns the tag of an address, for servers that find the client themselves. `ipv6_prefix` is the
/// number of leading bits of an IPv6 address that identify a client.
pub fn address_tag(address: IpAddr, ipv6_prefix: u32) -> AddressTag {
    masked(address, mask(ipv6_prefix))
}

fn mask(ipv6_prefix: u32) -> u128 {
    u128::MAX.checked_shl(128 - ipv6_prefix.min(128)).unwrap_or(0)
}

fn masked(address: IpAddr, ipv6_mask: u128) -> AddressTag {
    match address {
        IpAddr::V4(address) => AddressTag::V4(address.octets()),
        IpAddr::V6(address) => AddressTag::V6((address.to_bits() & ipv6_mask).to_be_bytes()),
    }
}

/// The tag of an address, 4 or 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressTag {
    /// An IPv4 address.
    V4([u8; 4]),
    /// The prefix of an IPv6 address. The other bits are zero.
    V6([u8; 16]),
}

impl AsRef<[u8]> for AddressTag {
    fn as_ref(&self) -> &[u8] {
        match self {
            AddressTag::V4(bytes) => bytes,
            AddressTag::V6(bytes) => bytes,
        }
    }
}

/// Parses an address as servers and proxies write it. Ignores surrounding blanks, brackets, a port
/// and a zone. Converts an IPv6 address that contains an IPv4 address.
///
/// ```
/// use dthrottle::web::parse_address;
///
/// assert_eq!(parse_address("[::ffff:203.0.113.7]:4711"), Some([203, 0, 113, 7].into()));
/// assert_eq!(parse_address("unknown"), None);
/// ```
pub fn parse_address(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Some(address.into());
    }
    let mut text = text.trim_matches([' ', '\t']);
    if let Some(inner) = text.strip_prefix('[') {
        let (address, port) = inner.split_once(']')?;
        if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
            return None;
        }
        text = address;
    } else if let Some((address, port)) = text.split_once(':') {
        if !port.contains(':') {
            return is_port(port).then(|| address.parse::<Ipv4Addr>().ok())?.map(Into::into);
        }
    } else {
        return text.parse::<Ipv4Addr>().ok().map(Into::into);
    }
    let address = text.split('%').next()?.parse::<Ipv6Addr>().ok()?;
    Some(canonical(address.into()))
}

/// Converts the 4 or 16 bytes of a socket address. Returns `None` for any other length.
pub fn address_from_bytes(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => Some(canonical(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?))),
        _ => None,
    }
}

/// Converts an IPv6 address that contains an IPv4 address. Returns other addresses unchanged.
pub(super) fn canonical(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let (prefix, last) = (v6.to_bits() >> 32, v6.to_bits() as u32);
    // IPv4-compatible addresses (RFC 4291), which do not include `::` and `::1`.
    let is_compatible = prefix == 0 && last >= 1 << 24;
    match prefix == MAPPED || prefix == NAT64 || is_compatible {
        true => Ipv4Addr::from_bits(last).into(),
        false => address,
    }
}

fn is_port(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_blank(entry: &str) -> bool {
    entry.bytes().all(|byte| byte == b' ' || byte == b'\t')
}
