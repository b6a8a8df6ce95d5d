//! Changes while the cluster runs: another process takes over, a node moves, a node starts with an
//! old table, or its first datagrams are lost.

use dthrottle::Rule;
use dthrottle::internals;
use dthrottle::internals::cluster::{Engine, Origin, PeerAddr, Settings};

use super::net::{MILLI, Net, SECOND, address, keys};

/// A rule that refills nothing while a test runs.
fn rule() -> Rule {
    Rule::per_hour(1).burst(10)
}

/// Lets another process of the same table run the exchange from now on.
fn take_over(net: &mut Net, index: usize, seed: u64, peers: &[usize]) {
    let now = net.now;
    let exchange = internals::exchange(&net.nodes[index].throttle);
    let settings = Settings::new(keys(), net.nodes[index].address);
    let mut engine = Engine::new(settings, exchange, seed, now, now);
    let peers: Vec<PeerAddr> = peers.iter().map(|peer| address(*peer)).collect();
    engine.join(now, &peers);
    net.nodes[index].engine = engine;
    net.nodes[index].next_timeout = now;
}

fn admit(net: &Net, node: usize, hits: usize) {
    assert!((0..hits).all(|_| net.allow(node, "tag")));
}

/// A network in which node 1 misses the first report of node 0 and cannot repair it yet.
fn with_missing_report() -> Net {
    let mut net = Net::of(2, &rule());
    let mut lost = false;
    net.lose = Box::new(move |datagram| {
        let is_first = datagram.from == address(0) && datagram.bytes[3] == 1 && !lost;
        lost |= is_first;
        is_first || datagram.bytes[3] == 2
    });
    admit(&net, 0, 6);
    net.run(150 * MILLI);
    admit(&net, 0, 4);
    net.run(150 * MILLI);
    assert_eq!(net.balance(1, "tag"), 6, "the second report arrived, the first did not");
    net
}

#[test]
fn the_next_exchanging_process_repairs_missing_reports() {
    let mut net = with_missing_report();
    take_over(&mut net, 1, 77, &[0]);
    net.lose = Box::new(|_| false);
    net.run(3 * SECOND);
    assert_eq!((net.balance(0, "tag"), net.balance(1, "tag")), (0, 0));
}

/// Its first hits must be reported before they are late.
#[test]
fn reports_of_the_next_exchanging_process_are_applied_immediately() {
    for seed in 0..12 {
        let mut net = Net::of(3, &rule());
        net.run(60 * MILLI * seed);
        take_over(&mut net, 1, 1000 + seed, &[0, 2]);
        admit(&net, 1, 6);
        net.run(250 * MILLI);
        assert_eq!((net.balance(0, "tag"), net.balance(2, "tag")), (4, 4), "seed {seed}");
    }
}

#[test]
fn the_next_exchanging_process_charges_nothing_twice() {
    let mut net = Net::of(2, &rule());
    admit(&net, 1, 7);
    net.run(300 * MILLI);
    take_over(&mut net, 0, 3, &[1]);
    net.run(3 * SECOND);
    assert_eq!((net.balance(0, "tag"), net.balance(1, "tag")), (3, 3));
}

/// The table has about 1,000 peer slots. Which reports of other peers were applied is not known
/// after a takeover, but they must not be charged again.
#[test]
fn a_takeover_without_peer_slots_charges_nothing_twice() {
    let mut net = Net::new();
    net.start(rule(), |_| {});
    let exchange = internals::exchange(&net.nodes[0].throttle);
    let peer_slots = (1..).map(|node| Origin { node, incarnation: 1 });
    assert!(peer_slots.map_while(|origin| exchange.claim_peer_slot(origin)).count() > 500);
    net.start(rule(), |_| {});
    net.run(3 * SECOND);
    admit(&net, 1, 10);
    net.run(300 * MILLI);
    assert_eq!(net.balance(0, "tag"), 0);
    take_over(&mut net, 0, 3, &[1]);
    net.run(3 * SECOND);
    assert_eq!(net.balance(0, "tag"), 0);
}

#[test]
fn a_node_requests_a_snapshot_after_its_exchange_was_stopped_for_long() {
    let mut net = Net::of(2, &rule());
    let now = net.now;
    net.nodes[1].engine.leave(now);
    net.drain_outputs(1);
    net.nodes[1].next_timeout = u64::MAX;
    net.run(100 * MILLI);
    admit(&net, 0, 9);
    net.run(60 * SECOND);
    take_over(&mut net, 1, 5, &[0]);
    net.run(3 * SECOND);
    assert_eq!((net.balance(0, "tag"), net.balance(1, "tag")), (1, 1));
}

#[test]
fn a_node_gets_a_snapshot_even_if_its_first_greetings_are_lost() {
    let mut net = Net::of(2, &rule());
    admit(&net, 0, 9);
    net.run(20 * SECOND);
    let mut left = 2;
    net.lose = Box::new(move |datagram| {
        let lose = datagram.from == address(2) && left > 0;
        left -= i32::from(lose);
        lose
    });
    net.start(rule(), |_| {});
    net.run(3 * SECOND);
    assert_eq!(net.balance(2, "tag"), 1);
}

#[test]
fn two_nodes_that_start_at_the_same_time_miss_no_report() {
    let mut net = Net::new();
    net.start(rule(), |_| {});
    net.start(rule(), |_| {});
    net.run(50 * MILLI);
    admit(&net, 0, 6);
    net.run(3 * SECOND);
    assert_eq!(net.balance(1, "tag"), 4);
}

#[test]
fn a_node_with_a_new_address_becomes_a_member_again() {
    let mut net = Net::of(3, &rule());
    let now = net.now;
    net.nodes[1].address = address(9);
    net.nodes[1].engine.set_address(address(9));
    net.nodes[1].engine.join(now, &[address(0), address(2)]);
    net.run(80 * SECOND);
    let peers: Vec<usize> = net.nodes.iter().map(|node| node.engine.peers()).collect();
    assert_eq!(peers, [2; 3]);
    admit(&net, 0, 6);
    net.run(500 * MILLI);
    assert_eq!(net.balance(1, "tag"), 4);
}

/// Old hits must not make newer hits late that are repaired in the same datagram.
#[test]
fn reports_merged_for_repair_keep_their_own_ages() {
    let mut net = Net::of(2, &Rule::per_hour(1).burst(100));
    net.lose = Box::new(|_| true);
    admit(&net, 0, 1);
    net.run(800 * MILLI);
    admit(&net, 0, 40);
    net.run(110 * MILLI);
    net.lose = Box::new(|_| false);
    net.run(300 * MILLI);
    assert_eq!(net.balance(1, "tag"), 60, "the 40 were 110 ms old when the network healed");
}

/// Otherwise the hits would be charged by the snapshot and by the report.
#[test]
fn a_snapshot_excludes_pending_hits() {
    let net = Net::of(1, &rule());
    admit(&net, 0, 8);
    let exchange = internals::exchange(&net.nodes[0].throttle);
    assert!(exchange.bucket_levels(net.now, 10).iter().all(|level| level.used_16ths == 0));
    let mut hits = 0;
    exchange.drain(net.now, false, |_, _| true, |drained| hits += drained.hits);
    assert_eq!(hits, 8);
    assert_eq!(exchange.bucket_levels(net.now, 10)[0].used_16ths, 8 * 16);
}

/// A node with other rules has applied all reports but has no buckets of this rule.
#[test]
fn a_node_gets_its_snapshot_from_a_peer_with_the_same_rules() {
    let rule = |name| Rule::per_second(1).burst(100).name(name);
    let mut net = Net::new();
    net.start(rule("ours"), |_| {});
    net.start(rule("theirs"), |_| {});
    net.run(3 * SECOND);
    while net.allow(0, "tag") {}
    net.run(SECOND);
    // The new node finds the node with other rules first.
    net.start(rule("ours"), |_| {});
    net.lose = Box::new(|datagram| [datagram.from, datagram.to] == [address(0), address(2)]);
    net.run(100 * MILLI);
    net.lose = Box::new(|_| false);
    net.run(SECOND);
    assert!(net.balance(2, "tag") < 10, "{}", net.balance(2, "tag"));
}

/// This happens when rules are changed node by node.
#[test]
fn a_node_with_a_new_burst_gets_a_snapshot_from_nodes_with_the_old_one() {
    let mut net = Net::of(2, &Rule::per_second(1).burst(100).name("one"));
    while net.allow(0, "tag") {}
    net.run(SECOND);
    net.start(Rule::per_second(1).burst(200).name("one"), |_| {});
    net.run(SECOND);
    assert!(net.balance(2, "tag") < 110, "{}", net.balance(2, "tag"));
}
