//! Throttles that are nodes of a cluster, with real sockets on this machine.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests may call the operating system"
)]

#[cfg(target_os = "linux")]
#[path = "processes/folder.rs"]
mod folder;

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use dthrottle::{BusyConfig, BusyThrottle, ClusterConfig, Rule, TableConfig, Throttle};

/// Returns ports that were free a moment ago.
fn ports(count: usize) -> Vec<u16> {
    let sockets: Vec<_> = (0..count).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect()
}

/// A rule whose units do not return while a test runs.
fn slow() -> Rule {
    Rule::per_hour(1).burst(1000)
}

/// Nodes that know the addresses of all others.
fn nodes(ports: &[u16], config: impl Fn(ClusterConfig) -> ClusterConfig) -> Vec<Throttle> {
    let node = |port: &u16| {
        let cluster = ClusterConfig::new("test").listen(&format!("127.0.0.1:{port}"));
        let peers = ports.iter().filter(|peer| *peer != port);
        let cluster =
            peers.fold(cluster, |cluster, peer| cluster.peer(&format!("127.0.0.1:{peer}")));
        let throttle = Throttle::builder().rule(slow()).cluster(config(cluster)).build().unwrap();
        throttle.start().unwrap();
        throttle
    };
    ports.iter().map(node).collect()
}

/// Waits with a long timeout, because the duration does not matter.
fn until(what: &str, done: impl FnMut() -> bool) {
    assert!(within(60, done), "timeout waiting for {what}");
}

fn within(seconds: u64, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(seconds);
    while !done() {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

fn is_whole(nodes: &[Throttle]) -> bool {
    nodes.iter().all(|node| {
        let stats = node.cluster_stats().unwrap();
        stats.peers.iter().filter(|peer| peer.state == "up").count() == nodes.len() - 1
    })
}

/// Checks a tag at all nodes. Returns true if each node soon knows of all units used.
fn agree(nodes: &[Throttle], tag: &str) -> bool {
    for i in 0..300 {
        assert!(nodes[i % nodes.len()].allow(tag).unwrap());
    }
    within(1, || {
        nodes.iter().all(|node| {
            let balance = node.peek(tag).unwrap().balance;
            // A node that starts may get one more unit from another node's snapshot.
            assert!(balance >= 699, "charged twice: {balance}");
            balance == 700
        })
    })
}

/// Repeats `agree` with new tags, because a node that is starting applies no reports and late hits
/// are not charged.
fn until_balances_agree(nodes: &[Throttle]) {
    assert!(
        (0..60).any(|tag| agree(nodes, &tag.to_string())),
        "the nodes never agreed about a tag"
    );
}

#[test]
fn balances_of_nodes_on_one_machine_agree() {
    let nodes = nodes(&ports(3), |config| config);
    until("three members", || is_whole(&nodes));
    until_balances_agree(&nodes);
    let stats = nodes[0].cluster_stats().unwrap();
    assert!(stats.count("reports_sent") > 0 && stats.count("reports_received") > 0);
    assert_eq!(stats.count("dropped_malformed"), 0);
    let events = nodes[0].events(0);
    assert_eq!(events.iter().filter(|event| event.kind == "peer_up").count(), 2);
    nodes[2].close();
    until("the event peer_left", || {
        nodes[0].events(events[1].number).iter().any(|event| event.kind == "peer_left")
    });
}

#[test]
fn nodes_with_different_secrets_drop_each_others_datagrams() {
    let ports = ports(2);
    let mut all = nodes(&ports[..1], |config| {
        config.secret("a secret of sixteen").peer(&format!("127.0.0.1:{}", ports[1]))
    });
    all.extend(nodes(&ports[1..], |config| config.secret("another secret ...")));
    let refused = |node: &Throttle| {
        let stats = node.cluster_stats().unwrap();
        stats.count("dropped_key") + stats.count("dropped_auth")
    };
    until("a datagram with another key", || refused(&all[1]) > 2);
    assert!(all[1].cluster_stats().unwrap().peers.is_empty());
}

/// Keys change while the cluster runs. Each step overlaps with the previous one.
#[test]
fn nodes_in_consecutive_steps_of_a_key_rotation_form_a_cluster() {
    let (old, new) = ("the old packet key", "the new packet key");
    let steps: [&[&str]; 4] = [&[old], &[old, new], &[new, old], &[new]];
    for step in steps.windows(2) {
        let ports = ports(2);
        let secret = |config: ClusterConfig| config.secret("a secret of sixteen");
        let address = |at: usize| format!("127.0.0.1:{}", ports[at]);
        let mut all = Vec::new();
        for (own, keys) in step.iter().enumerate() {
            let keys = keys.to_vec();
            let peer = address(1 - own);
            all.extend(nodes(&ports[own..=own], |config| {
                secret(config).packet_keys(&keys).peer(&peer)
            }));
        }
        until("two members with overlapping keys", || is_whole(&all));
    }
    let ports = ports(2);
    let peer = format!("127.0.0.1:{}", ports[1]);
    let mut all = nodes(&ports[..1], |config| {
        config.secret("a secret of sixteen").packet_keys([old]).peer(&peer)
    });
    all.extend(nodes(&ports[1..], |config| {
        config.secret("a secret of sixteen").packet_keys([new])
    }));
    let refused = |node: &Throttle| {
        let stats = node.cluster_stats().unwrap();
        stats.count("dropped_key") + stats.count("dropped_auth")
    };
    until("a datagram with a removed key", || refused(&all[1]) > 2);
    assert!(!is_whole(&all));
}

#[test]
fn nodes_find_each_other_by_multicast() {
    let group = format!("239.73.73.73:{}", ports(1)[0]);
    let node = || {
        let cluster = ClusterConfig::new("group").listen("127.0.0.1:0");
        let cluster = cluster.multicast(&group).interface("127.0.0.1").without_secret(true);
        let throttle = Throttle::builder().rule(slow()).cluster(cluster).build().unwrap();
        throttle.start().unwrap();
        throttle
    };
    let nodes = [node(), node(), node()];
    until("three members of a group", || is_whole(&nodes));
    until_balances_agree(&nodes);
}

#[test]
fn nodes_with_ipv6_addresses_form_a_cluster() {
    let sockets: Vec<_> = (0..2).map(|_| UdpSocket::bind("[::1]:0").unwrap()).collect();
    let addresses: Vec<String> =
        sockets.iter().map(|socket| socket.local_addr().unwrap().to_string()).collect();
    drop(sockets);
    let node = |own: usize| {
        let cluster = ClusterConfig::new("six").listen(&addresses[own]).peer(&addresses[1 - own]);
        let throttle = Throttle::builder().rule(slow()).cluster(cluster).build().unwrap();
        throttle.start().unwrap();
        throttle
    };
    let nodes = [node(0), node(1)];
    until("two members", || is_whole(&nodes));
}

/// The peer does not exist, and the port is in use. The application is not affected.
#[test]
fn a_node_without_a_socket_still_answers_checks() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let nodes = nodes(&[port], |config| config.peer("127.0.0.1:9"));
    until("a counted error", || nodes[0].cluster_stats().unwrap().count("bind_errors") > 1);
    assert!((0..1000).all(|_| nodes[0].allow("tag").unwrap()));
    drop(taken);
    until("datagrams after the port is free", || {
        nodes[0].cluster_stats().unwrap().count("datagrams_sent") > 3
    });
}

/// A closed throttle starts no exchange.
#[test]
fn a_closed_throttle_fails_and_starts_no_exchange() {
    let cluster = ClusterConfig::new("closed").listen("127.0.0.1:0");
    let throttle = Throttle::builder().rule(slow()).cluster(cluster).build().unwrap();
    let domain = throttle.domain("default").unwrap();
    throttle.close();
    assert!(domain.allow("tag").is_err() && throttle.start().is_err());
    thread::sleep(Duration::from_millis(300));
    assert_eq!(throttle.cluster_stats().unwrap().incarnation, 0, "an engine was made");
}

/// A node that leaves the exchange to another process says goodbye, and continues to check.
#[test]
fn a_stopped_node_still_answers_checks() {
    let nodes = nodes(&ports(2), |config| config);
    until("two members", || is_whole(&nodes));
    nodes[1].stop();
    until("the event peer_left", || {
        nodes[0].events(0).iter().any(|event| event.kind == "peer_left")
    });
    let before = nodes[1].cluster_stats().unwrap().incarnation;
    nodes[1].start().unwrap();
    assert!((0..1000).all(|_| nodes[1].allow("tag").unwrap()) && !nodes[1].allow("tag").unwrap());
    thread::sleep(Duration::from_millis(300));
    assert_eq!(
        nodes[1].cluster_stats().unwrap().incarnation,
        before,
        "the exchange was started again"
    );
    nodes[1].close();
    assert!(nodes[1].allow("tag").is_err());
}

/// One thread stops the node while another thread starts it.
#[test]
fn a_node_stopped_while_it_starts_does_not_run() {
    let ports = ports(400);
    let race = |(turn, port): (usize, &u16)| {
        let cluster = ClusterConfig::new("race").listen(&format!("127.0.0.1:{port}"));
        let rule = Rule::per_second(1);
        let table = TableConfig::private().tags(1);
        let builder = Throttle::builder().rule(rule).cluster(cluster).table(table);
        let throttle = builder.build().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| throttle.start().unwrap());
            // Starting a thread takes about this long.
            let end = Instant::now() + Duration::from_micros(turn as u64 % 100);
            while Instant::now() < end {}
            throttle.stop();
        });
        throttle
    };
    let nodes: Vec<Throttle> = ports.iter().enumerate().map(race).collect();
    // Long enough for every running node to bind a socket.
    thread::sleep(Duration::from_millis(300));
    for port in &ports {
        until("a free port", || UdpSocket::bind(format!("127.0.0.1:{port}")).is_ok());
    }
    assert!(nodes.iter().all(|node| node.allow("tag").unwrap()));
}

/// Only one process of the table has the setting: either the throttle that runs the exchange, or a
/// busy throttle that waits for the lock.
#[test]
#[cfg(target_os = "linux")]
fn a_throttle_shares_the_busy_responses_of_its_named_table() {
    for has_setting in [true, false] {
        let folder = folder::Folder::new();
        let table = || TableConfig::named("calls").dir(folder.path()).tags(1);
        let ports = ports(2);
        let cluster = |own: usize| {
            let cluster = ClusterConfig::new("test").listen(&format!("127.0.0.1:{}", ports[own]));
            cluster.peer(&format!("127.0.0.1:{}", ports[1 - own]))
        };
        let exchanger = Throttle::builder().rule(slow()).table(table());
        let exchanger = exchanger.cluster(cluster(0).busy(has_setting)).build().unwrap();
        exchanger.start().unwrap();
        until("the exchange", || exchanger.cluster_stats().unwrap().incarnation > 0);
        let beside = BusyConfig::new().table(table());
        let beside = if has_setting { beside } else { beside.cluster(cluster(0)) };
        let beside = BusyThrottle::new(beside).unwrap();
        let other = BusyThrottle::new(BusyConfig::new().cluster(cluster(1))).unwrap();
        beside.start();
        other.start();
        let peers = |busy: &BusyThrottle| busy.stats(busy.now()).peers;
        until("one peer each", || peers(&beside) == 1 && peers(&other) == 1);
        assert!(beside.node().is_none_or(|node| node.cluster_stats().unwrap().peers.len() == 1));
        beside.on_busy("api", beside.now(), Some(Duration::from_secs(3600)));
        until("the report at the other node", || !other.should_send("api", other.now()));
        other.on_busy("more", other.now(), Some(Duration::from_secs(3600)));
        until("the report at the table", || !beside.should_send("more", beside.now()));
    }
}
