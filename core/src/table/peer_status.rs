//! What the table stores about each peer, for statistics and for the next exchanging process: its
//! address, when it was last heard, and how many reports it sent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::atomic::{Ordering, fence};

use super::Table;
use super::cell::AtomicU64;

/// What is known about a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerStatus {
    /// The address that its datagrams come from.
    pub address: Option<SocketAddr>,
    /// The peer's state, encoded by the engine.
    pub state: u64,
    /// When the peer was last heard, in table time.
    pub last_heard_ns: u64,
    /// How long a datagram takes from the peer to this node.
    pub delay_ns: u64,
    /// Number of reports applied.
    pub received: u64,
    /// Number of applied reports that were missing at first.
    pub repaired: u64,
    /// Number of reports that are lost for good.
    pub lost: u64,
}

/// `PeerStatus` in the region.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct SharedPeerStatus {
    /// Three words. The first holds, from the low bits up: kind (0: no address), port, scope, and a
    /// count of writes. The other two hold the IP address.
    address: [AtomicU64; 3],
    numbers: [AtomicU64; 6],
}

/// The bits of the first word without the count of writes.
const KIND: u64 = (1 << 56) - 1;
const V4: u64 = 4;
const V6: u64 = 6;

impl Table {
    /// Returns the status in a peer slot.
    pub(crate) fn peer_status(&self, peer_slot: usize) -> PeerStatus {
        self.region
            .peer_slots()
            .get(peer_slot)
            .map_or_else(PeerStatus::default, |peer_slot| peer_slot.status.read())
    }

    /// Stores the status in a peer slot.
    pub(crate) fn set_peer_status(&self, peer_slot: usize, status: &PeerStatus) {
        if let Some(peer_slot) = self.region.peer_slots().get(peer_slot) {
            peer_slot.status.write(status);
        }
    }
}

impl SharedPeerStatus {
    pub(super) fn clear(&self) {
        self.write(&PeerStatus::default());
    }

    fn write(&self, status: &PeerStatus) {
        self.write_address(status.address.map_or([0; 3], words));
        let PeerStatus { state, last_heard_ns, delay_ns, received, repaired, lost, .. } = *status;
        let numbers = [state, last_heard_ns, delay_ns, received, repaired, lost];
        for (target, number) in self.numbers.iter().zip(numbers) {
            target.store(number, Ordering::Relaxed);
        }
    }

    /// If the process is killed here, readers find no address, never a mix of two.
    fn write_address(&self, new: [u64; 3]) {
        let [kind, high, low] = &self.address;
        let old = self.address.each_ref().map(|word| word.load(Ordering::Relaxed));
        if [old[0] & KIND, old[1], old[2]] == new {
            return;
        }
        let times = (old[0] & !KIND).wrapping_add(KIND + 1);
        kind.store(times, Ordering::Relaxed);
        // Release: a reader that sees a new word also sees that kind is 0.
        fence(Ordering::Release);
        high.store(new[1], Ordering::Relaxed);
        low.store(new[2], Ordering::Relaxed);
        // Release: a reader that sees the kind sees the address words.
        kind.store(times | new[0], Ordering::Release);
    }

    fn read(&self) -> PeerStatus {
        let [kind, high, low] = &self.address;
        // Acquire: pairs with the last store of `write_address`.
        let seen = kind.load(Ordering::Acquire);
        let words = [seen & KIND, high.load(Ordering::Relaxed), low.load(Ordering::Relaxed)];
        // Pairs with the fence in `write_address`.
        fence(Ordering::Acquire);
        let is_whole = kind.load(Ordering::Relaxed) == seen;
        let [state, last_heard_ns, delay_ns, received, repaired, lost] =
            self.numbers.each_ref().map(|word| word.load(Ordering::Relaxed));
        let address = if is_whole { socket_address(words) } else { None };
        PeerStatus { address, state, last_heard_ns, delay_ns, received, repaired, lost }
    }
}

fn words(address: SocketAddr) -> [u64; 3] {
    let port = u64::from(address.port()) << 8;
    match address {
        SocketAddr::V4(v4) => [V4 | port, 0, v4.ip().to_bits().into()],
        SocketAddr::V6(v6) => {
            let bits = v6.ip().to_bits();
            let scope = u64::from(v6.scope_id()) << 24;
            [V6 | port | scope, (bits >> 64) as u64, bits as u64]
        }
    }
}

/// The inverse of `words`. Returns `None` if the words are not an address.
fn socket_address([kind, high, low]: [u64; 3]) -> Option<SocketAddr> {
    let port = (kind >> 8) as u16;
    match kind & 0xff {
        V4 => {
            let ip = Ipv4Addr::from_bits(u32::try_from(low).ok()?);
            Some(SocketAddr::new(IpAddr::V4(ip), port))
        }
        V6 => {
            let ip = Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low));
            let scope = (kind >> 24) as u32;
            Some(SocketAddr::V6(SocketAddrV6::new(ip, port, 0, scope)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_peer_status_is_read_as_it_was_written() {
        let shared = SharedPeerStatus::default();
        assert_eq!(shared.read(), PeerStatus::default());
        let numbers = PeerStatus {
            state: 1,
            last_heard_ns: 2,
            delay_ns: 3,
            received: 4,
            repaired: 5,
            lost: u64::MAX,
            address: None,
        };
        for text in ["203.0.113.7:65535", "[2001:db8::7]:1", "[fe80::1%4294967295]:7946"] {
            let status = PeerStatus { address: Some(text.parse().unwrap()), ..numbers };
            shared.write(&status);
            assert_eq!(shared.read(), status);
        }
        shared.write(&numbers);
        assert_eq!(shared.read(), numbers);
    }

    #[test]
    fn a_half_written_address_is_none() {
        let shared = SharedPeerStatus::default();
        let address = Some("[2001:db8::7]:1".parse().unwrap());
        shared.write(&PeerStatus { address, ..PeerStatus::default() });
        shared.address[0].store(0, Ordering::Relaxed);
        shared.address[1].store(77, Ordering::Relaxed);
        assert_eq!(shared.read().address, None);
        for kind in [1, 5, 7 << 56, u64::MAX] {
            shared.address[0].store(kind, Ordering::Relaxed);
            assert_eq!(shared.read().address, None, "{kind}");
        }
    }

    #[test]
    fn readers_never_see_a_mix_of_two_addresses() {
        let shared = SharedPeerStatus::default();
        let rounds = if cfg!(miri) { 20 } else { 50_000 };
        let both = ["[1::1]:5", "[2::2]:5"].map(|text| text.parse().ok());
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for i in 0..rounds {
                    shared.write(&PeerStatus { address: both[i % 2], ..PeerStatus::default() });
                }
            });
            while !writer.is_finished() {
                let address = shared.read().address;
                assert!(address.is_none() || both.contains(&address), "{address:?}");
            }
        });
        assert_eq!(shared.read().address, both[1]);
    }
}
