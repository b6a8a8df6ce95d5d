//! The address of a client: parsed from every spelling, found behind trusted proxies, cut to a
//! prefix, as a tag that clients cannot choose.
//!
//! `docs/http.md` has the rules, `tests/vectors/addresses.json` the cases.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::networks::Networks;

/// The first 96 bits of IPv6 addresses that stand for the IPv4 address in their last 32 bits:
/// mapped ones, and those of NAT64 (RFC 6052). Compared as bits, never as text.
const MAPPED: u128 = 0xFFFF;
const NAT64: u128 = 0x0064_FF9B << 64;

/// Which entries of `X-Forwarded-For` to believe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trusted {
    /// This many proxies stand before the application, and each adds one entry.
    Count(usize),
    /// Proxies in these networks.
    Networks(Networks),
}

/// Finds the client behind trusted proxies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAddress {
    trusted: Trusted,
    /// Clears the bits of an IPv6 address behind the prefix.
    ipv6_mask: u128,
}

impl ClientAddress {
    /// `ipv6_prefix` is the number of leading bits of an IPv6 address that identify a client, from
    /// 1 to 128.
    pub fn new(trusted: Trusted, ipv6_prefix: u32) -> ClientAddress {
        ClientAddress { trusted, ipv6_mask: mask(ipv6_prefix) }
    }

    /// Whether `X-Forwarded-For` can matter.
    pub fn reads_forwarded(&self) -> bool {
        match &self.trusted {
            Trusted::Count(count) => *count > 0,
            Trusted::Networks(networks) => !networks.is_empty(),
        }
    }

    /// The client's whole address. `forwarded` are the lines of `X-Forwarded-For`, in their order.
    pub fn find(&self, peer: Option<&str>, forwarded: &[&str]) -> Option<IpAddr> {
        let peer = peer.and_then(parse_address);
        // From the nearest proxy outwards; empty entries do not count.
        let lines = forwarded.iter().rev();
        let entries = lines.flat_map(|line| line.rsplit(',')).filter(|entry| !is_blank(entry));
        match &self.trusted {
            // An entry that is not an address is skipped.
            Trusted::Count(count) => {
                let believed = entries.take(*count).filter_map(parse_address);
                believed.last().or(peer)
            }
            Trusted::Networks(networks) => networks.find(peer, entries),
        }
    }

    /// The address as a tag.
    pub fn tag(&self, address: IpAddr) -> AddressTag {
        masked(address, self.ipv6_mask)
    }
}

/// An address as a tag, for servers that find the client themselves.
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

/// An address as a tag: 4 bytes, or 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressTag {
    /// An IPv4 address.
    V4([u8; 4]),
    /// The prefix of an IPv6 address; the other bits are zero.
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

/// Parses an address as servers and proxies write it. Surrounding blanks, brackets, a port and a
/// zone do not matter. An IPv6 address that stands for an IPv4 address gives that.
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

/// Parses an address of 4 or 16 bytes, as a socket has it.
pub fn address_from_bytes(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => Some(canonical(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?))),
        _ => None,
    }
}

/// The IPv4 address that an IPv6 address stands for, or the address itself.
pub(super) fn canonical(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let (prefix, last) = (v6.to_bits() >> 32, v6.to_bits() as u32);
    // Compatible addresses (RFC 4291) have no prefix; `::` and `::1` are not among them.
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
