//! The driver recovers from errors of its sockets.

use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use crate::test_engine::{read, to_one, until};
use crate::test_node::TestNode;

#[test]
fn a_port_in_use_is_bound_when_it_becomes_free() {
    for any in ["127.0.0.1:0", "[::1]:0"] {
        let other = UdpSocket::bind(any).unwrap();
        let address = other.local_addr().unwrap();
        let node = TestNode::start(&address.to_string());
        let errors = &node.environment.counters.bind_errors;
        until("second attempt", || (read(errors) >= 2).then_some(()));
        assert!(node.environment.bound.lock().unwrap().is_empty());
        drop(other);
        assert_eq!(node.address(), address);
        let peer = TestNode::start(any);
        peer.send(to_one(address, *b"hello"));
        assert_eq!(node.receives(b"hello"), peer.address());
    }
}

#[test]
fn a_broken_socket_is_replaced_on_the_same_port() {
    let (node, peer) = (TestNode::start("127.0.0.1:0"), TestNode::start("127.0.0.1:0"));
    let address = node.address();
    node.send(to_one(peer.address(), *b"before"));
    peer.receives(b"before");
    let null = File::open("/dev/null").unwrap();
    let fd = node.environment.fds.lock().unwrap()[0];
    // SAFETY: replaces the file behind a descriptor. Nothing depends on the old file.
    assert_eq!(unsafe { libc::dup2(null.as_raw_fd(), fd) }, fd);
    until("another socket", || {
        node.send(to_one(peer.address(), *b"meanwhile"));
        (node.environment.bound.lock().unwrap().len() == 2).then_some(())
    });
    assert!(read(&node.environment.counters.send_errors) >= 16);
    assert_eq!(node.address(), address);
    node.send(to_one(peer.address(), *b"after"));
    assert_eq!(peer.receives(b"after"), address);
    peer.send(to_one(address, *b"and back"));
    assert_eq!(node.receives(b"and back"), peer.address());
}

#[test]
fn sending_to_a_closed_port_does_not_replace_the_socket() {
    let (node, peer) = (TestNode::start("127.0.0.1:0"), TestNode::start("127.0.0.1:0"));
    let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for _ in 0..100 {
        node.send(to_one(gone, *b"lost"));
    }
    node.send(to_one(peer.address(), *b"after"));
    peer.receives(b"after");
    assert_eq!(node.environment.bound.lock().unwrap().len(), 1);
}
