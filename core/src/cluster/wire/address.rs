//! The encoding of addresses in HELLO and SWIM messages, and the conversion between peer addresses
//! and IP addresses. The engine depends on neither.
//!
//! In a `PeerAddr`, an IP address is the byte 4 or 6, the address, the port and, for link-local
//! IPv6 addresses, the index of this host's interface, which is never sent.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::DropCause;
use super::bytes::Reader;
use crate::cluster::PeerAddr;

/// The first byte of an address in HELLO.
const V4: u8 = 4;
const V6: u8 = 6;
/// A length byte and that many bytes follow.
const OTHER: u8 = 0;

/// An address in SWIM messages: the first two variants match serde's form of `SocketAddr`.
#[derive(Serialize, Deserialize)]
enum SerializedAddr {
    V4([u8; 4], u16),
    V6([u8; 16], u16),
    Other(Vec<u8>),
}

impl PeerAddr {
    /// Returns the IP address and port, or `None` if the address is one of another transport.
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        let (kind, mut rest) = self.as_bytes().split_first()?;
        let ip = match *kind {
            V4 => IpAddr::from(take::<4>(&mut rest)?),
            V6 => IpAddr::from(take::<16>(&mut rest)?),
            _ => return None,
        };
        let port = u16::from_be_bytes(take(&mut rest)?);
        match ip {
            IpAddr::V6(ip) if !rest.is_empty() => {
                let scope = u32::from_be_bytes(take(&mut rest)?);
                rest.is_empty().then(|| SocketAddrV6::new(ip, port, 0, scope).into())
            }
            ip => rest.is_empty().then(|| SocketAddr::new(ip, port)),
        }
    }

    /// Returns where to reach a peer that announced this address in a datagram from `from`. That is
    /// `from` if the announced address is unspecified, or is a loopback address but `from` is
    /// another host.
    pub(crate) fn reachable_from(self, from: PeerAddr) -> PeerAddr {
        let (Some(here), Some(there)) = (self.socket_addr(), from.socket_addr()) else {
            return self;
        };
        let is_wrong =
            here.ip().is_unspecified() || here.ip().is_loopback() && !there.ip().is_loopback();
        if is_wrong { from } else { self }
    }

    /// Appends the address in the encoding of HELLO.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self.socket_addr() {
            Some(address) => {
                let (kind, port) = (if address.is_ipv4() { V4 } else { V6 }, address.port());
                out.push(kind);
                match address.ip() {
                    IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
                    IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
                }
                out.extend_from_slice(&port.to_be_bytes());
            }
            None => {
                out.extend_from_slice(&[OTHER, self.as_bytes().len() as u8]);
                out.extend_from_slice(self.as_bytes());
            }
        }
    }

    /// Reads what `put` wrote.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<PeerAddr, DropCause> {
        let ip = match reader.u8()? {
            V4 => IpAddr::from(reader.array::<4>()?),
            V6 => IpAddr::from(reader.array::<16>()?),
            OTHER => {
                let len = reader.u8()?;
                return PeerAddr::other(reader.take(len.into())?).ok_or(DropCause::Malformed);
            }
            _ => return Err(DropCause::Malformed),
        };
        Ok(SocketAddr::new(ip, reader.u16()?).into())
    }

    /// Creates an address of another transport. IP addresses are refused here, so that each address
    /// has only one encoding.
    fn other(bytes: &[u8]) -> Option<PeerAddr> {
        PeerAddr::new(bytes).filter(|address| address.socket_addr().is_none())
    }
}

impl From<SocketAddr> for PeerAddr {
    fn from(address: SocketAddr) -> PeerAddr {
        let mut bytes = Vec::with_capacity(23);
        match address {
            SocketAddr::V4(v4) => {
                bytes.push(V4);
                bytes.extend_from_slice(&v4.ip().octets());
                bytes.extend_from_slice(&v4.port().to_be_bytes());
            }
            SocketAddr::V6(v6) => {
                bytes.push(V6);
                bytes.extend_from_slice(&v6.ip().octets());
                bytes.extend_from_slice(&v6.port().to_be_bytes());
                if v6.scope_id() != 0 {
                    bytes.extend_from_slice(&v6.scope_id().to_be_bytes());
                }
            }
        }
        PeerAddr::new(&bytes).expect("1 to 23 bytes")
    }
}

impl Serialize for PeerAddr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = match self.socket_addr() {
            Some(SocketAddr::V4(v4)) => SerializedAddr::V4(v4.ip().octets(), v4.port()),
            Some(SocketAddr::V6(v6)) => SerializedAddr::V6(v6.ip().octets(), v6.port()),
            None => SerializedAddr::Other(self.as_bytes().to_vec()),
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PeerAddr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PeerAddr, D::Error> {
        match SerializedAddr::deserialize(deserializer)? {
            SerializedAddr::V4(ip, port) => Ok(SocketAddr::from((ip, port)).into()),
            SerializedAddr::V6(ip, port) => Ok(SocketAddr::from((ip, port)).into()),
            SerializedAddr::Other(bytes) => PeerAddr::other(&bytes).ok_or_else(|| {
                D::Error::custom("an address that is not an IP address must have 1 to 31 bytes")
            }),
        }
    }
}

/// Removes the first `N` bytes, or returns `None` if there are fewer.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> PeerAddr {
        text.parse::<SocketAddr>().unwrap().into()
    }

    #[test]
    fn ip_addresses_are_converted_to_peer_addresses_and_back() {
        for text in ["192.0.2.7:7373", "[2001:db8::7]:1", "[fe80::1%4294967295]:7946"] {
            assert_eq!(ip(text).socket_addr(), text.parse().ok());
            assert_eq!(format!("{:?}", ip(text)), text);
        }
        for other in [&b"\x04short"[..], b"a name", &[6; 20], &[6; 24]] {
            assert_eq!(PeerAddr::new(other).unwrap().socket_addr(), None);
        }
    }

    #[test]
    fn ip_addresses_sort_like_socket_addresses() {
        let mut texts = ["[::1]:9", "10.0.0.2:9", "10.0.0.10:9", "10.0.0.2:700", "[fe80::1%2]:9"];
        texts.sort_by_key(|text| text.parse::<SocketAddr>().unwrap());
        assert!(texts.is_sorted_by_key(|text| ip(text)));
    }

    #[test]
    fn an_unreachable_address_is_replaced_by_the_source_of_the_datagram() {
        let from = ip("192.0.2.7:40");
        for (announced, expected) in [
            ("10.0.0.1:7", "10.0.0.1:7"),
            ("0.0.0.0:7", "192.0.2.7:40"),
            ("[::]:7", "192.0.2.7:40"),
            ("127.0.0.1:7", "192.0.2.7:40"),
        ] {
            assert_eq!(ip(announced).reachable_from(from), ip(expected));
        }
        assert_eq!(ip("127.0.0.1:7").reachable_from(ip("[::1]:40")), ip("127.0.0.1:7"));
        let name = PeerAddr::new(b"node-7").unwrap();
        assert_eq!(name.reachable_from(from), name);
    }

    #[test]
    fn an_address_has_one_encoding_in_hello() {
        let mut out = Vec::new();
        for address in [ip("192.0.2.7:9"), ip("[::1]:9"), PeerAddr::new(b"node-7").unwrap()] {
            out.clear();
            address.put(&mut out);
            assert_eq!(PeerAddr::read(&mut Reader::new(&out)), Ok(address));
        }
        assert_eq!(out, b"\0\x06node-7");
        // The index of the interface is valid on this host only.
        out.clear();
        ip("[fe80::1%3]:9").put(&mut out);
        assert_eq!(PeerAddr::read(&mut Reader::new(&out)), Ok(ip("[fe80::1]:9")));
        for wrong in [&b"\0\0"[..], b"\0\x07node-7", b"\0\x07\x04\x7f\0\0\x01\0\x07", b"\x05"] {
            assert_eq!(PeerAddr::read(&mut Reader::new(wrong)), Err(DropCause::Malformed));
        }
        let long = [&[OTHER, 32][..], &[7; 32]].concat();
        assert_eq!(PeerAddr::read(&mut Reader::new(&long)), Err(DropCause::Malformed));
    }
}
