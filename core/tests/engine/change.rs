//! Nodes that change while the cluster runs: another process takes over, a node moves, starts with
//! an old table, or with bad luck.

use dthrottle::Rule;
use dthrottle::internals;
use dthrottle::internals::cluster::{Engine, Origin, PeerAddr, Settings};

use super::net::{MILLI, Net, SECOND, address, keys};

/// Nothing comes back while a test runs.
fn rule() -> Rule {
    Rule::per_hour(1).burst(10)
}

/// Another process of the same table runs the exchange from now on.
fn take_over(net: &mut Net, index: usize, seed: u64, peers: &[usize]) {
    let now = net.now;
    let exchange = internals::exchange(&net.nodes[index].throttle);
    let settings = Settings::new(keys(), net.nodes[index].address);
    let mut engine = Engine::new(settings, exchange, seed, now, now);
    let peers: Vec<PeerAddr> = peers.iter().map(|peer| address(*peer)).collect();
    engine.join(now, &peers);
    net.nodes[index].engine = engine;
    net.nodes[index].next = now;
}

fn admit(net: &Net, node: usize, hits: usize) {
    assert!((0..hits).all(|_| net.allow(node, "tag")));
}

/// The first report is lost and cannot be repaired yet.
fn with_a_hole() -> Net {
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
    assert_eq!(net.balance(1, "tag"), 6, "the second report came, the first did not");
    net
}

#[test]
fn what_was_missing_is_repaired_by_who_takes_over() {
    let mut net = with_a_hole();
    take_over(&mut net, 1, 77, &[0]);
    net.lose = Box::new(|_| false);
    net.run(3 * SECOND);
    assert_eq!((net.balance(0, "tag"), net.balance(1, "tag")), (0, 0));
}

/// What it admits meanwhile must not become too old to count.
#[test]
fn who_takes_over_is_heard_at_once() {
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
fn who_takes_over_charges_nothing_twice() {
    let mut net = Net::of(2, &rule());
    admit(&net, 1, 7);
    net.run(300 * MILLI);
    take_over(&mut net, 0, 3, &[1]);
    net.run(3 * SECOND);
    assert_eq!((net.balance(0, "tag"), net.balance(1, "tag")), (3, 3));
}

/// There is a place in the table for some 1,000 peers. Reports of others are not known to whoever
/// takes over, and must not be charged again all the same.
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
fn a_table_that_nobody_exchanged_for_long_starts_warm() {
    let mut net = Net::of(2, &rule());
    let now = net.now;
    net.nodes[1].engine.leave(now);
    net.drain_outputs(1);
    net.nodes[1].next = u64::MAX;
    net.run(100 * MILLI);
    admit(&net, 0, 9);
    net.run(60 * SECOND);
    take_over(&mut net, 1, 5, &[0]);
    net.run(3 * SECOND);
    assert_eq!((net.balance(0, "tag"), net.balance(1, "tag")), (1, 1));
}

#[test]
fn a_lost_greeting_is_no_cold_start() {
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
fn two_that_start_at_once_miss_nothing() {
    let mut net = Net::new();
    net.start(rule(), |_| {});
    net.start(rule(), |_| {});
    net.run(50 * MILLI);
    admit(&net, 0, 6);
    net.run(3 * SECOND);
    assert_eq!(net.balance(1, "tag"), 4);
}

#[test]
fn a_node_that_moves_is_met_anew() {
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

/// Old hits do not make new ones late that are repaired together with them.
#[test]
fn merged_repair_keeps_ages_apart() {
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

/// What is in a snapshot must not come as a report, too.
#[test]
fn a_snapshot_leaves_out_what_is_pending() {
    let net = Net::of(1, &rule());
    admit(&net, 0, 8);
    let exchange = internals::exchange(&net.nodes[0].throttle);
    assert!(exchange.bucket_levels(net.now, 10).iter().all(|level| level.used_16ths == 0));
    let mut hits = 0;
    exchange.drain(net.now, false, |_, _| true, |drained| hits += drained.hits);
    assert_eq!(hits, 8);
    assert_eq!(exchange.bucket_levels(net.now, 10)[0].used_16ths, 8 * 16);
}

/// Who has other rules has seen all reports, and kept nothing of them.
#[test]
fn a_node_is_warmed_by_one_that_has_its_rules() {
    let rule = |name| Rule::per_second(1).burst(100).name(name);
    let mut net = Net::new();
    net.start(rule("ours"), |_| {});
    net.start(rule("theirs"), |_| {});
    net.run(3 * SECOND);
    while net.allow(0, "tag") {}
    net.run(SECOND);
    // The new one meets the other first.
    net.start(rule("ours"), |_| {});
    net.lose = Box::new(|datagram| [datagram.from, datagram.to] == [address(0), address(2)]);
    net.run(100 * MILLI);
    net.lose = Box::new(|_| false);
    net.run(SECOND);
    assert!(net.balance(2, "tag") < 10, "{}", net.balance(2, "tag"));
}

/// As when rules are changed, node by node.
#[test]
fn a_node_with_new_rules_is_warmed_by_those_with_old_ones() {
    let mut net = Net::of(2, &Rule::per_second(1).burst(100).name("one"));
    while net.allow(0, "tag") {}
    net.run(SECOND);
    net.start(Rule::per_second(1).burst(200).name("one"), |_| {});
    net.run(SECOND);
    assert!(net.balance(2, "tag") < 110, "{}", net.balance(2, "tag"));
}
