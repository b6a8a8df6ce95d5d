//! Nodes of one host in a multicast group on the loopback interface. All of them receive each
//! datagram and the address of its sender.

use std::net::SocketAddr;

use dthrottle::internals::cluster::{To, Transmit};
use dthrottle::internals::udp::MulticastGroup;

use crate::test_engine::{read, until};
use crate::test_node::TestNode;

/// A port that only this run uses, because other processes of this host would receive the
/// datagrams.
fn port(test: u32) -> u16 {
    u16::try_from(20_000 + (std::process::id() * 16 + test) % 12_000).unwrap()
}

fn group(address: &str, test: u32, interface: Option<&str>) -> Option<MulticastGroup> {
    let address = SocketAddr::new(address.parse().unwrap(), port(test));
    Some(MulticastGroup { address, interface: interface.map(Into::into), ttl: 1 })
}

/// Sends each datagram repeatedly, because it is unknown when the other nodes have joined.
fn all_receive(nodes: &[TestNode], port_only: bool) {
    for (i, sender) in nodes.iter().enumerate() {
        let text = format!("from node {i}").into_bytes();
        for receiver in nodes {
            let from = until("datagram", || {
                sender.send(Transmit { to: To::Group, bytes: text.clone() });
                let received = receiver.shared.received.lock().unwrap();
                received.iter().find(|(_, bytes)| *bytes == text).map(|(from, _)| *from)
            });
            let address = sender.address();
            if port_only {
                assert_eq!(from.port(), address.port());
                assert_eq!(from.ip().to_canonical(), from.ip(), "not an IPv4-mapped address");
            } else {
                assert_eq!(from, address);
            }
        }
    }
}

#[test]
fn ipv4_nodes_join_on_the_interface_they_listen_on() {
    let start = || TestNode::with("127.0.0.1:0", group("239.255.77.1", 1, None), &[]);
    all_receive(&[start(), start(), start()], false);
}

#[test]
fn ipv4_nodes_join_on_an_interface_given_by_name() {
    let start = || TestNode::with("127.0.0.1:0", group("239.255.77.2", 2, Some("lo")), &[]);
    all_receive(&[start(), start()], false);
}

#[test]
fn ipv4_nodes_with_different_listeners_join_on_an_interface_given_by_address() {
    let start = |listen| TestNode::with(listen, group("239.255.77.3", 3, Some("127.0.0.1")), &[]);
    all_receive(&[start("0.0.0.0:0"), start("[::]:0"), start("127.0.0.1:0")], true);
}

/// On a real interface, multicast to the sending host must be enabled.
#[test]
fn ipv4_nodes_on_any_interface_receive_or_count_errors() {
    let start = || TestNode::with("0.0.0.0:0", group("239.255.77.7", 9, None), &[]);
    let (sender, receiver) = (start(), start());
    let counters = &sender.environment.counters;
    until("datagram, or an error without an interface", || {
        sender.send(Transmit { to: To::Group, bytes: b"to all".into() });
        let received = !receiver.shared.received.lock().unwrap().is_empty();
        // The first datagrams are sent before the group is joined.
        (received || read(&counters.send_errors) > 1000).then_some(())
    });
}

/// The name and address of an interface with IPv6. The loopback interface often cannot do multicast
/// with IPv6.
fn ipv6_interface() -> Option<(String, String)> {
    let all = std::fs::read_to_string("/proc/net/if_inet6").unwrap();
    let link = all.lines().find(|line| line.starts_with("fe80"))?;
    let digits: Vec<char> = link.chars().take(32).collect();
    let groups: Vec<String> = digits.chunks(4).map(|group| group.iter().collect()).collect();
    Some((link.split_whitespace().last()?.into(), groups.join(":")))
}

/// On a host without such an interface, errors are counted.
fn all_receive_by_ipv6(nodes: &[TestNode]) {
    if ipv6_interface().is_some() {
        return all_receive(nodes, true);
    }
    let counters = &nodes[0].environment.counters;
    until("error", || {
        nodes[0].send(Transmit { to: To::Group, bytes: vec![1] });
        (read(&counters.bind_errors) + read(&counters.send_errors) > 0).then_some(())
    });
}

#[test]
fn ipv6_nodes_join_on_any_interface() {
    for address in ["ff15::7:1", "ff12::7:1"] {
        let start = || TestNode::with("[::]:0", group(address, 4, None), &[]);
        all_receive_by_ipv6(&[start(), start(), start()]);
    }
}

#[test]
fn ipv6_nodes_join_on_an_interface_given_by_name_or_address() {
    let (name, address) = ipv6_interface().unwrap_or(("lo".into(), "::1".into()));
    for group_address in ["ff15::7:2", "ff12::7:2"] {
        let start =
            |interface| TestNode::with("[::]:0", group(group_address, 5, Some(interface)), &[]);
        all_receive_by_ipv6(&[start(&name), start(&address)]);
    }
}

#[test]
fn nodes_may_join_before_and_after_a_listener_on_the_port_of_the_group() {
    let group = group("239.255.77.4", 6, Some("lo"));
    let other = || TestNode::with("127.0.0.1:0", group.clone(), &[]);
    let first = other();
    all_receive(std::slice::from_ref(&first), false);
    let receiver = TestNode::with(&format!("0.0.0.0:{}", port(6)), group.clone(), &[]);
    all_receive(&[first, receiver, other()], true);
}

#[test]
fn two_nodes_cannot_listen_on_the_port_of_the_group() {
    let start = || {
        TestNode::with(&format!("0.0.0.0:{}", port(8)), group("239.255.77.6", 8, Some("lo")), &[])
    };
    let first = start();
    first.address();
    let second = start();
    until("conflict", || (read(&second.environment.counters.bind_errors) >= 2).then_some(()));
    assert!(second.environment.bound.lock().unwrap().is_empty());
    drop(first);
    assert_eq!(second.address().port(), port(8));
}

#[test]
fn a_node_without_its_multicast_interface_still_sends_unicast() {
    let lost = TestNode::with("127.0.0.1:0", group("239.255.77.5", 7, Some("no-such0")), &[]);
    let other = TestNode::start("127.0.0.1:0");
    lost.send(crate::test_engine::to_one(other.address(), *b"I am here"));
    assert_eq!(other.receives(b"I am here"), lost.address());
    until("second attempt", || (read(&lost.environment.counters.bind_errors) >= 2).then_some(()));
}
