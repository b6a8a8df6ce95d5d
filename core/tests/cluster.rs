//! Throttles that are nodes of a cluster, on real sockets of this machine.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests may ask the operating system"
)]

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use dthrottle::{ClusterConfig, Rule, Throttle};

/// Ports that were free a moment ago.
fn ports(count: usize) -> Vec<u16> {
    let sockets: Vec<_> = (0..count).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect()
}

/// Nodes that know the addresses of all.
fn nodes(ports: &[u16], config: impl Fn(ClusterConfig) -> ClusterConfig) -> Vec<Throttle> {
    let node = |port: &u16| {
        let cluster = ClusterConfig::new("test").listen(&format!("127.0.0.1:{port}"));
        let peers = ports.iter().filter(|peer| *peer != port);
        let cluster =
            peers.fold(cluster, |cluster, peer| cluster.peer(&format!("127.0.0.1:{peer}")));
        let rule = Rule::per_second(1).burst(1000);
        let throttle = Throttle::builder().rule(rule).cluster(config(cluster)).build().unwrap();
        throttle.start().unwrap();
        throttle
    };
    ports.iter().map(node).collect()
}

/// How long something takes is not the question here.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "never: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn is_whole(nodes: &[Throttle]) -> bool {
    nodes.iter().all(|node| {
        let stats = node.cluster_stats().unwrap();
        stats.peers.iter().filter(|peer| peer.state == "up").count() == nodes.len() - 1
    })
}

#[test]
fn nodes_on_one_machine_agree() {
    let nodes = nodes(&ports(3), |config| config);
    until("three nodes", || is_whole(&nodes));
    for i in 0..300 {
        assert!(nodes[i % 3].allow("tag").unwrap());
    }
    let balance = |node: &Throttle| node.peek("tag").unwrap().balance;
    until("agreement", || nodes.iter().all(|node| (700..710).contains(&balance(node))));
    let stats = nodes[0].cluster_stats().unwrap();
    assert!(stats.count("reports_sent") > 0 && stats.count("reports_received") > 0);
    assert_eq!(stats.count("dropped_malformed"), 0);
    let events = nodes[0].events(0);
    assert_eq!(events.iter().filter(|event| event.kind == "peer_up").count(), 2);
    nodes[2].close();
    until("goodbye", || {
        nodes[0].events(events[1].number).iter().any(|event| event.kind == "peer_left")
    });
}

#[test]
fn another_secret_is_another_cluster() {
    let ports = ports(2);
    let mut all = nodes(&ports[..1], |config| {
        config.secret("a secret of sixteen").peer(&format!("127.0.0.1:{}", ports[1]))
    });
    all.extend(nodes(&ports[1..], |config| config.secret("another secret ...")));
    let refused = |node: &Throttle| {
        let stats = node.cluster_stats().unwrap();
        stats.count("dropped_key") + stats.count("dropped_auth")
    };
    until("a datagram under another key", || refused(&all[1]) > 2);
    assert!(all[1].cluster_stats().unwrap().peers.is_empty());
}
