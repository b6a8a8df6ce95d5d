//! A node whose engine sends what the test gives it, and tests of several such nodes.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dthrottle::internals::cluster::{PeerAddr, To, Transmit};
use dthrottle::internals::udp::{Background, DriverConfig, MulticastGroup};

use crate::test_engine::{Environment, Shared, TestEngine, free_lock, to_one, until};

pub(crate) struct TestNode {
    pub(crate) shared: Arc<Shared>,
    pub(crate) environment: Environment,
    pub(crate) background: Background,
}

impl TestNode {
    pub(crate) fn start(listen: &str) -> TestNode {
        TestNode::with(listen, None, &[])
    }

    pub(crate) fn with(listen: &str, group: Option<MulticastGroup>, peers: &[&str]) -> TestNode {
        let (shared, environment) = (Arc::<Shared>::default(), Environment::default());
        let setup = DriverConfig {
            listen: listen.parse().unwrap(),
            advertise: None,
            is_local: false,
            group,
            peers: peers.iter().map(ToString::to_string).collect(),
        };
        let make = {
            let shared = shared.clone();
            move || {
                *shared.status.lock().unwrap() = fs::read_to_string("/proc/thread-self/status")?;
                Ok((TestEngine::new(&shared), setup.clone()))
            }
        };
        let background = Background::start(environment.hooks(), free_lock, make).unwrap();
        TestNode { shared, environment, background }
    }

    /// The address that the node listens on, once it is bound.
    pub(crate) fn address(&self) -> SocketAddr {
        until("socket", || self.environment.bound.lock().unwrap().last().copied())
    }

    pub(crate) fn send(&self, transmit: Transmit) {
        self.shared.to_send.lock().unwrap().push_back(transmit);
    }

    /// Waits for a datagram and returns its sender.
    pub(crate) fn receives(&self, what: &[u8]) -> SocketAddr {
        until("datagram", || {
            let received = self.shared.received.lock().unwrap();
            received.iter().find(|(_, bytes)| bytes == what).map(|(from, _)| *from)
        })
    }
}

#[test]
fn nodes_receive_datagrams_with_the_address_of_the_sender() {
    for listen in ["127.0.0.1:0", "[::1]:0"] {
        let nodes = [(); 3].map(|()| TestNode::start(listen));
        let addresses = nodes.each_ref().map(TestNode::address);
        nodes[0].send(to_one(addresses[1], *b"to one"));
        assert_eq!(nodes[1].receives(b"to one"), addresses[0]);
        let each: Arc<[PeerAddr]> = Arc::new([addresses[1].into(), addresses[2].into()]);
        for text in ["first", "other", "last"] {
            nodes[0].send(Transmit { to: To::Each(each.clone()), bytes: text.into() });
        }
        for node in &nodes[1..] {
            for text in ["first", "other", "last"] {
                assert_eq!(node.receives(text.as_bytes()), addresses[0]);
            }
        }
    }
}

#[test]
fn a_node_that_listens_on_any_address_uses_ipv4_and_ipv6() {
    let (both, v4, v6) =
        (TestNode::start("[::]:0"), TestNode::start("127.0.0.1:0"), TestNode::start("[::1]:0"));
    let port = both.address().port();
    both.send(to_one(v4.address(), *b"to v4"));
    both.send(to_one(v6.address(), *b"to v6"));
    assert_eq!(v4.receives(b"to v4"), SocketAddr::from(([127, 0, 0, 1], port)));
    assert_eq!(v6.receives(b"to v6"), SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port)));
    v4.send(to_one(v4.receives(b"to v4"), *b"from v4"));
    v6.send(to_one(v6.receives(b"to v6"), *b"from v6"));
    assert_eq!(both.receives(b"from v4"), v4.address(), "not an IPv4-mapped address");
    assert_eq!(both.receives(b"from v6"), v6.address());
}

#[test]
fn a_node_sends_between_received_datagrams_during_a_flood() {
    let node = TestNode::start("127.0.0.1:0");
    let (address, peer) = (node.address(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let stop_engine = node.shared.stop_engine.lock().unwrap();
    let before = node.shared.timeouts.load(Ordering::Relaxed);
    until("a blocked engine", || {
        (node.shared.timeouts.load(Ordering::Relaxed) > before).then_some(())
    });
    for _ in 0..2000 {
        peer.send_to(b"flood", address).unwrap();
    }
    drop(stop_engine);
    // A small receive buffer may drop some of the datagrams.
    until("flood", || (node.shared.received.lock().unwrap().len() >= 300).then_some(()));
    let polls = node.shared.polls.lock().unwrap();
    let most = polls.chunk_by(|a, b| a == b).map(<[u64]>::len).max();
    assert!(most <= Some(256), "{most:?} datagrams without polling the engine");
}

#[test]
fn peers_are_joined_by_address_and_by_name() {
    let peers = ["127.0.0.1:7001", "localhost:7002", "[::1]:7003", "192.0.2.1:7004"];
    let node = TestNode::with("127.0.0.1:0", None, &peers);
    let joined = |ports: &[u16]| {
        let joined = node.shared.joined.lock().unwrap();
        let found = joined.iter().any(|peers| {
            let found: Vec<u16> = peers.iter().map(SocketAddr::port).collect();
            found == ports
        });
        found.then_some(())
    };
    // An IPv4 socket on the loopback interface cannot reach the other two peers.
    until("address", || joined(&[7001]));
    until("name", || joined(&[7001, 7002]));
}
