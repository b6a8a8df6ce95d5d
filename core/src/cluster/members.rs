//! Membership and failure detection by SWIM, on top of the crate `foca`.

use std::collections::{BTreeMap, VecDeque};
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use foca::{
    Config, Foca, NoCustomBroadcast, Notification, PeriodicParams, PostcardCodec, Runtime, Timer,
};
use rand::rngs::SmallRng;
use serde::{Deserialize, Serialize};

use super::wire::MAX_BODY;
use super::{Origin, PeerAddr};

/// The identity of a member. A member that was declared dead comes back under the next generation;
/// the numbers of its reports continue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) address: PeerAddr,
    node: u64,
    incarnation: u64,
    generation: u16,
}

impl Identity {
    pub(super) fn new(address: PeerAddr, origin: Origin) -> Identity {
        let Origin { node, incarnation } = origin;
        Identity { address, node, incarnation, generation: 0 }
    }

    pub(super) fn origin(&self) -> Origin {
        Origin { node: self.node, incarnation: self.incarnation }
    }
}

impl foca::Identity for Identity {
    type Addr = PeerAddr;

    fn renew(&self) -> Option<Identity> {
        Some(Identity { generation: self.generation.wrapping_add(1), ..self.clone() })
    }

    fn addr(&self) -> PeerAddr {
        self.address
    }

    /// The later identity at an address is the one that is running.
    fn win_addr_conflict(&self, other: &Identity) -> bool {
        (self.incarnation, self.generation) > (other.incarnation, other.generation)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MembershipChange {
    Up(Identity),
    Down(Identity),
}

/// The other members of the cluster.
pub(super) struct Members {
    foca: Foca<Identity, PostcardCodec, SmallRng, NoCustomBroadcast>,
    runtime: FocaRuntime,
    /// The cluster size that foca is configured for.
    size: u32,
}

/// Collects what foca requests (datagrams, timers, notifications) until the engine handles it.
#[derive(Default)]
struct FocaRuntime {
    now: u64,
    sends: VecDeque<(PeerAddr, Vec<u8>)>,
    changes: VecDeque<MembershipChange>,
    timers: BTreeMap<(u64, u64), Timer<Identity>>,
    /// The number of timers so far, which makes their keys unique.
    count: u64,
}

impl Runtime<Identity> for &mut FocaRuntime {
    fn notify(&mut self, notification: Notification<'_, Identity>) {
        match notification {
            Notification::MemberUp(member) => {
                self.changes.push_back(MembershipChange::Up(member.clone()));
            }
            Notification::MemberDown(member) => {
                self.changes.push_back(MembershipChange::Down(member.clone()));
            }
            // A new incarnation at the same address.
            Notification::Rename(before, after) => {
                self.changes.push_back(MembershipChange::Down(before.clone()));
                self.changes.push_back(MembershipChange::Up(after.clone()));
            }
            _ => {}
        }
    }

    fn send_to(&mut self, to: Identity, data: &[u8]) {
        self.sends.push_back((to.address, data.to_vec()));
    }

    fn submit_after(&mut self, event: Timer<Identity>, after: Duration) {
        let at = self.now.saturating_add(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX));
        self.count += 1;
        self.timers.insert((at, self.count), event);
    }
}

impl Members {
    pub(super) fn new(me: Identity, rng: SmallRng) -> Members {
        let size = 16;
        let foca = Foca::new(me, config(size), rng, PostcardCodec);
        Members { foca, runtime: FocaRuntime::default(), size }
    }

    pub(super) fn len(&self) -> usize {
        self.foca.num_members()
    }

    /// Announces this node to a member.
    pub(super) fn announce(&mut self, now: u64, to: Identity) {
        self.runtime.now = now;
        // Foca's errors concern received messages, or a codec that cannot fail, so there is nothing
        // to do.
        self.foca.announce(to, &mut self.runtime).ok();
    }

    /// Handles a SWIM message. Returns false if it is malformed.
    pub(super) fn handle(&mut self, now: u64, data: &[u8]) -> bool {
        self.runtime.now = now;
        self.foca.handle_data(data, &mut self.runtime).is_ok()
    }

    pub(super) fn handle_timeout(&mut self, now: u64) {
        self.runtime.now = now;
        while let Some(entry) = self.runtime.timers.first_entry()
            && entry.key().0 <= now
        {
            let timer = entry.remove();
            self.foca.handle_timer(timer, &mut self.runtime).ok();
        }
        self.adjust_config();
    }

    pub(super) fn leave(&mut self, now: u64) {
        self.runtime.now = now;
        self.foca.leave_cluster(&mut self.runtime).ok();
    }

    pub(super) fn next_timeout(&self) -> Option<u64> {
        self.runtime.timers.first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn next_send(&mut self) -> Option<(PeerAddr, Vec<u8>)> {
        self.runtime.sends.pop_front()
    }

    pub(super) fn next_change(&mut self) -> Option<MembershipChange> {
        self.runtime.changes.pop_front()
    }

    /// Reconfigures foca when the cluster size has changed much: the suspicion time and the number
    /// of retransmissions depend on it.
    fn adjust_config(&mut self) {
        let members = u32::try_from(self.len()).unwrap_or(u32::MAX);
        let size = members.max(16).next_power_of_two();
        if size != self.size && self.foca.set_config(config(size)).is_ok() {
            self.size = size;
        }
    }
}

fn config(size: u32) -> Config {
    let size = NonZeroU32::new(size).unwrap_or(NonZeroU32::MIN);
    let often = |millis, members| {
        let num_members = NonZeroUsize::new(members).unwrap_or(NonZeroUsize::MIN);
        Some(PeriodicParams { frequency: Duration::from_millis(millis), num_members })
    };
    Config {
        max_packet_size: NonZeroUsize::new(MAX_BODY).unwrap_or(NonZeroUsize::MIN),
        // After a partition, all members find each other again within a second or two.
        periodic_announce_to_down_members: often(500, 3),
        remove_down_after: Some(Duration::from_secs(60)),
        ..Config::new_lan(size)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use foca::Codec;

    use super::*;

    /// An identity that contains a `SocketAddr`, whose serialized form defines the bytes of
    /// messages.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct WithSocket(SocketAddr, u64, u64, u16);

    impl foca::Identity for WithSocket {
        type Addr = SocketAddr;

        fn renew(&self) -> Option<WithSocket> {
            None
        }

        fn addr(&self) -> SocketAddr {
            self.0
        }

        fn win_addr_conflict(&self, _: &WithSocket) -> bool {
            false
        }
    }

    #[test]
    fn an_ip_address_is_encoded_like_a_socket_address() {
        let origin = Origin { node: u64::MAX, incarnation: 5 };
        for text in ["192.0.2.7:7373", "[2001:db8::7]:1", "[fe80::1%3]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            let with_socket = WithSocket(address, origin.node, origin.incarnation, 0);
            let (mut expected, mut bytes) = (Vec::new(), Vec::new());
            PostcardCodec.encode_member(&foca::Member::alive(with_socket), &mut expected).unwrap();
            let member = foca::Member::alive(Identity::new(address.into(), origin));
            PostcardCodec.encode_member(&member, &mut bytes).unwrap();
            assert_eq!(bytes, expected);
            let read: foca::Member<Identity> = PostcardCodec.decode_member(&bytes[..]).unwrap();
            assert_eq!(read.id().address.socket_addr().unwrap().ip(), address.ip());
        }
    }
}
