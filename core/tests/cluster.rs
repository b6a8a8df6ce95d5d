//! Throttles that are nodes of a cluster, on real sockets of this machine.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests may ask the operating system"
)]

#[cfg(target_os = "linux")]
#[path = "processes/folder.rs"]
mod folder;

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use dthrottle::{BusyConfig, BusyThrottle, ClusterConfig, Rule, TableConfig, Throttle};

/// Ports that were free a moment ago.
fn ports(count: usize) -> Vec<u16> {
    let sockets: Vec<_> = (0..count).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect()
}

/// A rule that gives nothing back while a test runs.
fn slow() -> Rule {
    Rule::per_hour(1).burst(1000)
}

/// Nodes that know the addresses of all.
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

/// How long something takes is not the question here.
fn until(what: &str, done: impl FnMut() -> bool) {
    assert!(within(60, done), "never: {what}");
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

/// Uses a tag at all nodes; whether each soon knows of all that was used.
fn agree(nodes: &[Throttle], tag: &str) -> bool {
    for i in 0..300 {
        assert!(nodes[i % nodes.len()].allow(tag).unwrap());
    }
    within(1, || {
        nodes.iter().all(|node| {
            let balance = node.peek(tag).unwrap().balance;
            // One less where a node has it from another when it starts.
            assert!(balance >= 699, "charged twice: {balance}");
            balance == 700
        })
    })
}

/// Tries further tags: nodes that start take no reports, and nobody charges what comes late.
fn until_they_agree(nodes: &[Throttle]) {
    assert!((0..60).any(|tag| agree(nodes, &tag.to_string())), "never: agreement");
}

#[test]
fn nodes_on_one_machine_agree() {
    let nodes = nodes(&ports(3), |config| config);
    until("three nodes", || is_whole(&nodes));
    until_they_agree(&nodes);
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

/// Keys are changed while the cluster runs: each step overlaps with the one before.
#[test]
fn packet_keys_rotate() {
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
        until("two nodes with overlapping keys", || is_whole(&all));
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
    until("a datagram under a key that is gone", || refused(&all[1]) > 2);
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
    until("three nodes of a group", || is_whole(&nodes));
    until_they_agree(&nodes);
}

#[test]
fn nodes_talk_by_ipv6() {
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
    until("two nodes", || is_whole(&nodes));
}

/// Nobody listens there, and the port is taken: the application notices nothing.
#[test]
fn a_node_without_a_socket_goes_on_alone() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let nodes = nodes(&[port], |config| config.peer("127.0.0.1:9"));
    until("an error that is counted", || {
        nodes[0].cluster_stats().unwrap().count("bind_errors") > 1
    });
    assert!((0..1000).all(|_| nodes[0].allow("tag").unwrap()));
    drop(taken);
    until("the port", || nodes[0].cluster_stats().unwrap().count("datagrams_sent") > 3);
}

/// A throttle that is closed starts nothing.
#[test]
fn closed_is_closed() {
    let cluster = ClusterConfig::new("closed").listen("127.0.0.1:0");
    let throttle = Throttle::builder().rule(slow()).cluster(cluster).build().unwrap();
    let domain = throttle.domain("default").unwrap();
    throttle.close();
    assert!(domain.allow("tag").is_err() && throttle.start().is_err());
    thread::sleep(Duration::from_millis(300));
    assert_eq!(throttle.cluster_stats().unwrap().incarnation, 0, "no engine was made");
}

/// One that leaves the exchange to others says goodbye, and checks as before.
#[test]
fn a_node_that_stops_goes_on_checking() {
    let nodes = nodes(&ports(2), |config| config);
    until("two nodes", || is_whole(&nodes));
    nodes[1].stop();
    until("goodbye", || nodes[0].events(0).iter().any(|event| event.kind == "peer_left"));
    let before = nodes[1].cluster_stats().unwrap().incarnation;
    nodes[1].start().unwrap();
    assert!((0..1000).all(|_| nodes[1].allow("tag").unwrap()) && !nodes[1].allow("tag").unwrap());
    thread::sleep(Duration::from_millis(300));
    assert_eq!(nodes[1].cluster_stats().unwrap().incarnation, before, "it began again");
    nodes[1].close();
    assert!(nodes[1].allow("tag").is_err());
}

/// Also one that is told so by one thread while another starts it.
#[test]
fn a_node_that_stops_while_it_starts_has_stopped() {
    let ports = ports(400);
    let race = |(turn, port): (usize, &u16)| {
        let cluster = ClusterConfig::new("race").listen(&format!("127.0.0.1:{port}"));
        let rule = Rule::per_second(1);
        let table = TableConfig::private().tags(1);
        let builder = Throttle::builder().rule(rule).cluster(cluster).table(table);
        let throttle = builder.build().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| throttle.start().unwrap());
            // A thread takes about so long to start.
            let end = Instant::now() + Duration::from_micros(turn as u64 % 100);
            while Instant::now() < end {}
            throttle.stop();
        });
        throttle
    };
    let nodes: Vec<Throttle> = ports.iter().enumerate().map(race).collect();
    // Long enough for each that goes on to have a socket.
    thread::sleep(Duration::from_millis(300));
    for port in &ports {
        until("its port is free", || UdpSocket::bind(format!("127.0.0.1:{port}")).is_ok());
    }
    assert!(nodes.iter().all(|node| node.allow("tag").unwrap()));
}

/// One process of the table has the setting: the throttle that runs the exchange, or a busy throttle
/// that waits for its turn.
#[test]
#[cfg(target_os = "linux")]
fn a_throttle_shares_the_busy_answers_of_its_named_table() {
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
        until("exchange", || exchanger.cluster_stats().unwrap().incarnation > 0);
        let beside = BusyConfig::new().table(table());
        let beside = if has_setting { beside } else { beside.cluster(cluster(0)) };
        let beside = BusyThrottle::new(beside).unwrap();
        let other = BusyThrottle::new(BusyConfig::new().cluster(cluster(1))).unwrap();
        beside.start();
        other.start();
        let peers = |busy: &BusyThrottle| busy.stats(busy.now()).peers;
        until("peers", || peers(&beside) == 1 && peers(&other) == 1);
        assert!(beside.node().is_none_or(|node| node.cluster_stats().unwrap().peers.len() == 1));
        beside.on_busy("api", beside.now(), Some(Duration::from_secs(3600)));
        until("report to the other", || !other.should_send("api", other.now()));
        other.on_busy("more", other.now(), Some(Duration::from_secs(3600)));
        until("report to the table", || !beside.should_send("more", beside.now()));
    }
}
