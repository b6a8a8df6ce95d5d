//! The address of a peer: bytes that only the transport interprets.
//!
//! The engine compares addresses and passes them back to the transport. `wire/address.rs` converts
//! IP addresses.

use std::fmt;

/// The maximum number of bytes of an address.
pub const MAX_PEER_ADDR: usize = 31;

/// The address of a peer. A transport other than UDP may use any bytes, such as a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerAddr {
    /// Padded with zeros, so that comparing the arrays compares the addresses.
    bytes: [u8; MAX_PEER_ADDR],
    len: u8,
}

impl PeerAddr {
    /// Creates an address. Returns `None` if `address` is empty or longer than `MAX_PEER_ADDR`.
    pub fn new(address: &[u8]) -> Option<PeerAddr> {
        let mut bytes = [0; MAX_PEER_ADDR];
        bytes.get_mut(..address.len())?.copy_from_slice(address);
        let len = u8::try_from(address.len()).ok().filter(|len| *len > 0)?;
        Some(PeerAddr { bytes, len })
    }

    /// The bytes of the address.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for PeerAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.socket_addr() {
            Some(address) => fmt::Debug::fmt(&address, f),
            None => write!(f, "\"{}\"", self.as_bytes().escape_ascii()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_1_to_31_bytes() {
        assert_eq!(PeerAddr::new(&[]), None);
        assert_eq!(PeerAddr::new(&[7; 32]), None);
        for len in 1..=31 {
            assert_eq!(PeerAddr::new(&[7; 31][..len]).unwrap().as_bytes(), &[7; 31][..len]);
        }
        assert_ne!(PeerAddr::new(b"a"), PeerAddr::new(b"a\0"));
    }
}
