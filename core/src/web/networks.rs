//! Lists of networks, for trusted proxies and for exempt clients.

use std::net::{IpAddr, Ipv6Addr};

use super::address::{canonical, parse_address};
use crate::limit::rate::quoted;

/// Entries of `trusted_proxies` that stand for peers on a Unix socket.
const UNIX: [&str; 2] = ["unix", "unix:"];

/// A list of networks.
///
/// ```
/// use dthrottle::web::Networks;
///
/// let mut networks = Networks::default();
/// networks.add("10.0.0.0/8")?;
/// assert!(networks.contains([10, 1, 2, 3].into()));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    /// Whether the list includes peers on a Unix socket.
    unix: bool,
    networks: Vec<Network>,
}

/// A network, as the leading bits of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    is_v4: bool,
    bits: u128,
    /// The number of trailing bits that the addresses of the network do not share.
    shift: u32,
}

impl Networks {
    /// Adds an address, a network such as `10.0.0.0/8`, or `unix`.
    ///
    /// # Errors
    ///
    /// If the text is none of these. The error is a description of valid text.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        if UNIX.contains(&text) {
            self.unix = true;
        } else {
            self.networks.push(Network::parse(text)?);
        }
        Ok(())
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        !self.unix && self.networks.is_empty()
    }

    /// Whether one of the networks contains the address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(address))
    }

    /// Finds the client: the first address, from the peer outwards, that is not in the list. An
    /// entry that is not an address ends the search, and the last address before it is the client.
    pub(super) fn find<'a>(
        &self,
        peer: Option<IpAddr>,
        entries: impl Iterator<Item = &'a str>,
    ) -> Option<IpAddr> {
        if !peer.map_or(self.unix, |peer| self.contains(peer)) {
            return peer;
        }
        let mut client = peer;
        for entry in entries {
            let Some(address) = parse_address(entry) else { break };
            client = Some(address);
            if !self.contains(address) {
                break;
            }
        }
        client
    }
}

impl Network {
    fn parse(text: &str) -> Result<Network, String> {
        let wrong = || "an address or a network such as \"10.0.0.0/8\"".to_string();
        let (written, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = written.parse().map_err(|_| wrong())?;
        let (number, size) = number_of(address);
        let bits = match length {
            None => size,
            Some(length) if length.len() <= 3 && length.bytes().all(|b| b.is_ascii_digit()) => {
                length.parse().ok().filter(|bits| *bits <= size).ok_or_else(wrong)?
            }
            Some(_) => return Err(wrong()),
        };
        let shift = size - bits;
        let kept = number.checked_shr(shift).unwrap_or(0);
        let base = kept.checked_shl(shift).unwrap_or(0);
        let network = match address {
            // A network of IPv4-mapped IPv6 addresses is an IPv4 network.
            IpAddr::V6(_) if shift <= 32 => {
                let (number, size) = number_of(canonical(Ipv6Addr::from_bits(base).into()));
                Network { is_v4: size == 32, bits: number >> shift.min(size), shift }
            }
            _ => Network { is_v4: address.is_ipv4(), bits: kept, shift },
        };
        if shift == if network.is_v4 { 32 } else { 128 } {
            return Err(
                "a smaller network (if all addresses are trusted, clients can forge theirs)".into(),
            );
        }
        if base != number {
            let base = match address {
                IpAddr::V4(_) => IpAddr::from((base as u32).to_be_bytes()),
                IpAddr::V6(_) => Ipv6Addr::from_bits(base).into(),
            };
            return Err(quoted(&format!("{base}/{bits}")));
        }
        Ok(network)
    }

    fn contains(&self, address: IpAddr) -> bool {
        let (number, size) = number_of(address);
        address.is_ipv4() == self.is_v4 && self.shift < size && number >> self.shift == self.bits
    }
}

/// Returns an address as a number, and its size in bits.
fn number_of(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}
