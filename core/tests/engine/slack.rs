//! The tolerance for delays: all nodes use the longest delay in the cluster, until it has become
//! shorter.

use dthrottle::Rule;
use dthrottle::internals;
use dthrottle::internals::cluster::wire::{DatagramKind, Envelope, Hello};
use dthrottle::internals::cluster::{Origin, rounded_slack};

use super::net::{Datagram, MILLI, Net, SECOND, address, keys};

fn rule() -> Rule {
    Rule::per_hour(1).burst(10)
}

fn slacks(net: &Net) -> Vec<u64> {
    net.nodes.iter().map(|node| internals::exchange(&node.throttle).slack()).collect()
}

/// Returns the longest delay that a node has measured itself.
fn longest_delay(net: &Net, node: usize) -> u64 {
    let exchange = internals::exchange(&net.nodes[node].throttle);
    exchange
        .peer_slots()
        .map(|(peer_slot, _)| exchange.peer_status(peer_slot).delay_ns)
        .max()
        .unwrap()
}

/// Only the link between the last two of six nodes has a long delay.
fn one_long_link(datagram: &Datagram) -> u64 {
    let is_far = |at| at == address(4) || at == address(5);
    if is_far(datagram.from) && is_far(datagram.to) { 40 * MILLI } else { MILLI }
}

#[test]
fn all_nodes_use_the_longest_delay_in_the_cluster() {
    let mut net = Net::new();
    net.delay = Box::new(one_long_link);
    (0..6).for_each(|_| net.start(rule(), |_| {}));
    net.run(10 * SECOND);
    assert_eq!(longest_delay(&net, 0), MILLI, "node 0 has only short links");
    assert_eq!(slacks(&net), [rounded_slack(80 * MILLI); 6]);

    // A node that starts later learns the slack from the first greeting.
    net.start(rule(), |_| {});
    net.run(300 * MILLI);
    assert_eq!(slacks(&net), [rounded_slack(80 * MILLI); 7]);

    net.delay = Box::new(|_| MILLI);
    net.run(120 * SECOND);
    assert_eq!(slacks(&net), [rounded_slack(2 * MILLI); 7], "the long delay is over");
}

#[test]
fn a_node_without_peers_has_no_slack() {
    let mut net = Net::of(2, &rule());
    assert!(slacks(&net)[0] > 0);
    let now = net.now;
    net.nodes[1].engine.leave(now);
    net.drain_outputs(1);
    net.nodes[1].next_timeout = u64::MAX;
    net.run(SECOND);
    assert_eq!(slacks(&net)[0], 0);
}

/// All clocks jump ahead while greetings are in flight, as if the machine had been suspended.
#[test]
fn a_clock_jump_does_not_make_a_long_delay() {
    let mut net = Net::of(8, &rule());
    let before = longest_delay(&net, 0);
    let mut jumps = 0;
    while longest_delay(&net, 0) == before {
        net.run(MILLI / 2);
        let later = net.now + 800 * MILLI;
        net.move_clocks(later);
        net.run(1200 * MILLI);
        jumps += 1;
        assert!(jumps < 1000, "no greeting was in flight during any of {jumps} jumps");
    }
    let after = longest_delay(&net, 0);
    assert!(after <= 2 * before + 5 * MILLI, "{before} ns became {after} ns");
    assert!(slacks(&net).iter().all(|slack| *slack < 30 * MILLI), "{:?}", slacks(&net));
    net.run(120 * SECOND);
    assert_eq!(slacks(&net), [rounded_slack(2 * MILLI); 8], "the longer delay has expired");
}

/// An attacker without the key can only replay greetings.
#[test]
fn a_replayed_greeting_does_not_raise_the_slack() {
    let mut net = Net::of(2, &rule());
    let before = slacks(&net);
    let hello = Hello {
        challenge: 7,
        echo: 0,
        top: 0,
        rules: 0,
        slack_us: 2_000_000,
        slack_age_us: 0,
        address: address(7),
    };
    let (mut body, mut bytes) = (Vec::new(), Vec::new());
    hello.write(&mut body);
    let sender = Origin { node: 4242, incarnation: 1 };
    let envelope = Envelope { kind: DatagramKind::Hello, flags: 0, sender, packet: 1 };
    keys().seal(&envelope, &body, &mut bytes);
    let now = net.now;
    net.nodes[0].engine.handle_datagram(now, address(7), &mut bytes);
    net.run(5 * SECOND);
    assert_eq!(slacks(&net), before);
}
