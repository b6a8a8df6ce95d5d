//! Engines that exchange datagrams over a simulated network, in virtual time.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod busy;
mod change;
mod hostile;
mod net;
mod periodic;
mod slack;

use dthrottle::Rule;
use dthrottle::internals::cluster::{Event, PeerAddr};

use net::{MILLI, Net, SECOND};

fn rule() -> Rule {
    Rule::per_second(1).burst(10)
}

#[test]
fn nodes_find_each_other_and_their_balances_agree() {
    let mut net = Net::of(3, &rule());
    assert!(net.nodes.iter().all(|node| node.engine.peers() == 2));
    assert!((0..4).all(|_| net.allow(0, "tag")));
    assert!((0..3).all(|_| net.allow(1, "tag")));
    net.run(100 * MILLI);
    for node in 0..3 {
        assert_eq!(net.balance(node, "tag"), 3, "node {node}");
    }
}

/// Only the transport interprets addresses, and it need not be UDP.
#[test]
fn nodes_with_names_as_addresses_find_each_other_and_agree() {
    let mut net = Net::new();
    net.address = |node| PeerAddr::new(format!("node-{node}.example").as_bytes()).unwrap();
    (0..3).for_each(|_| net.start(rule(), |_| {}));
    net.run(3 * SECOND);
    assert!(net.nodes.iter().all(|node| node.engine.peers() == 2));
    assert!((0..6).all(|i| net.allow(i % 3, "tag")));
    net.run(100 * MILLI);
    assert!((0..3).all(|node| net.balance(node, "tag") == 4));
}

#[test]
fn lost_reports_are_repaired_and_charged_once() {
    let mut net = Net::of(3, &Rule::per_second(100).burst(1000));
    let mut state = 1_u64;
    net.lose = Box::new(move |_| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        state >> 33 & 3 == 0
    });
    net.copies = 2;
    for round in 0..100 {
        assert!(net.allow(round % 3, "tag"));
        net.run(10 * MILLI);
    }
    net.run(500 * MILLI);
    // 1.5 s passed, and 100 units per second were refilled.
    let balances: Vec<i64> = (0..3).map(|node| net.balance(node, "tag")).collect();
    assert_eq!(balances, [1000; 3], "all buckets are full again");
    assert!((0..300).all(|i| net.allow(i % 3, "tag")));
    net.run(SECOND);
    let balances: Vec<i64> = (0..3).map(|node| net.balance(node, "tag")).collect();
    assert_eq!(balances, [800; 3], "300 units were used, 100 were refilled");
    for node in 0..3 {
        let mut applied = net.nodes[node].engine.take_applied();
        applied.sort_unstable();
        let overlap = applied.windows(2).any(|two| two[0].0 == two[1].0 && two[0].2 >= two[1].1);
        assert!(!overlap, "a report was applied twice: {applied:?}");
        assert!(!applied.is_empty());
    }
}

#[test]
fn an_unreachable_node_is_declared_dead_and_comes_back() {
    let mut net = Net::of(3, &rule());
    net.lose = Box::new(|datagram| {
        let cut = |address| address == net::address(2);
        cut(datagram.from) != cut(datagram.to)
    });
    net.run(20 * SECOND);
    assert_eq!(net.nodes[0].engine.peers(), 1);
    assert_eq!(net.nodes[2].engine.peers(), 0);
    net.lose = Box::new(|_| false);
    net.run(3 * SECOND);
    let peers: Vec<usize> = net.nodes.iter().map(|node| node.engine.peers()).collect();
    assert_eq!(peers, [2; 3]);
}

#[test]
fn balances_agree_after_a_partition() {
    let mut net = Net::of(2, &Rule::per_second(10).burst(100));
    net.lose = Box::new(|_| true);
    for _ in 0..100 {
        net.allow(0, "tag");
        net.allow(1, "tag");
        net.allow(1, "tag");
        net.run(100 * MILLI);
    }
    assert_eq!((net.balance(0, "tag"), net.balance(1, "tag")), (100, 1));
    net.lose = Box::new(|_| false);
    net.run(2 * SECOND);
    let shown = (net.balance(0, "tag"), net.balance(1, "tag"));
    assert_eq!(shown.0, shown.1);
    assert!(shown.0 < -60, "{shown:?}");
}

#[test]
fn a_restarted_node_gets_the_buckets_of_its_peers() {
    let mut net = Net::of(3, &Rule::per_second(1).burst(100));
    assert!((0..90).all(|i| net.allow(i % 3, "tag")));
    net.run(SECOND);
    net.restart(1, Rule::per_second(1).burst(100));
    assert_eq!(net.balance(1, "tag"), 100);
    net.run(SECOND);
    let balances: Vec<i64> = (0..3).map(|node| net.balance(node, "tag")).collect();
    assert_eq!(balances, [12; 3]);
    assert!((0..6).all(|i| net.allow(i % 3, "tag")));
    net.run(SECOND);
    let balances: Vec<i64> = (0..3).map(|node| net.balance(node, "tag")).collect();
    assert_eq!(balances, [7; 3], "reports are sent and received after the restart");
}

#[test]
fn a_node_that_left_receives_no_more_reports() {
    let mut net = Net::of(3, &rule());
    assert!(net.allow(2, "tag"));
    let now = net.now;
    net.nodes[2].engine.leave(now);
    net.drain_outputs(2);
    net.nodes[2].next_timeout = u64::MAX;
    net.run(100 * MILLI);
    assert_eq!(net.balance(0, "tag"), 9, "its last hits were reported");
    let gone = net.nodes[2].engine.origin();
    for node in &net.nodes[..2] {
        assert!(node.events.contains(&Event::PeerLeft(gone)), "{:?}", node.events);
    }
    net.sent.clear();
    assert!(net.allow(0, "tag"));
    net.run(5 * SECOND);
    let reports = |datagram: &&net::Datagram| datagram.bytes[3] == 1;
    assert!(net.sent.iter().any(|datagram| reports(&datagram)));
    assert!(!net.sent.iter().filter(reports).any(|to| to.to == net::address(2)));
}

#[test]
fn nodes_with_different_bursts_emit_an_event_and_charge_by_their_own_rule() {
    let mut net = Net::new();
    net.start(rule(), |_| {});
    net.start(Rule::per_second(1).burst(20), |_| {});
    net.run(3 * SECOND);
    for (node, other) in [(0, 1), (1, 0)] {
        let other = net.nodes[other].engine.origin();
        assert!(net.nodes[node].events.contains(&Event::RulesDiffer(other)));
    }
    assert!((0..4).all(|_| net.allow(0, "tag")));
    net.run(100 * MILLI);
    assert_eq!((net.balance(0, "tag"), net.balance(1, "tag")), (6, 16));
    let same = Net::of(2, &rule());
    let differs = |event: &Event| matches!(event, Event::RulesDiffer(_));
    assert!(!same.nodes.iter().any(|node| node.events.iter().any(differs)));
}

/// The machines were suspended: their hits are old, but their peers are still running.
#[test]
fn after_a_clock_jump_buckets_are_full_and_peers_are_members() {
    let mut net = Net::of(3, &rule());
    assert!((0..5).all(|_| net.allow(0, "tag")));
    // All nodes are suspended, with pending hits and datagrams in flight.
    let later = net.now + 3600 * SECOND;
    net.move_clocks(later);
    net.run(5 * SECOND);
    for node in 0..3 {
        assert_eq!(net.balance(node, "tag"), 10, "node {node}: the bucket is full again");
        assert_eq!(net.nodes[node].engine.peers(), 2);
    }
    assert!((0..5).all(|i| net.allow(i % 3, "tag")));
    net.run(100 * MILLI);
    assert!((0..3).all(|node| net.balance(node, "tag") == 5));
}

#[test]
fn entries_of_many_tags_fill_datagrams() {
    let mut net = Net::of(2, &rule());
    net.sent.clear();
    for tag in 0..10_000 {
        assert!(net.allow(0, &format!("tag {tag}")));
    }
    net.run(2 * SECOND);
    assert!((0..10_000).all(|tag| net.balance(1, &format!("tag {tag}")) >= 9));
    assert_eq!(net.nodes[1].throttle.stats().buckets, 0, "all buckets are full again");
    let reports = net.sent.iter().filter(|datagram| datagram.bytes[3] == 1);
    let bytes: usize = reports.map(|datagram| datagram.bytes.len()).sum();
    assert!((80_000..110_000).contains(&bytes), "{bytes} bytes");
}

/// The tolerance allows for the delay of reports, so a node without peers has none.
#[test]
fn a_node_has_tolerance_only_while_it_has_peers() {
    let rule = || Rule::per_second(10).burst(10);
    let admitted = |net: &Net, tag: &str| (0..100).filter(|_| net.allow(0, tag)).count();
    let mut net = Net::new();
    net.start(rule(), |_| {});
    net.run(3 * SECOND);
    assert_eq!(admitted(&net, "alone"), 10);
    net.start(rule(), |_| {});
    net.run(3 * SECOND);
    assert_eq!(
        admitted(&net, "with a peer"),
        11,
        "a tolerance of 103 ms: the period and the slack"
    );
    net.lose = Box::new(|_| true);
    net.run(30 * SECOND);
    assert_eq!(admitted(&net, "alone again"), 10);
}
