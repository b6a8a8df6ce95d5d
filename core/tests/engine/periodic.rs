//! Periodic reports: exactly one per period, and no tolerance, as in the original DThrottle.

use std::time::Duration;

use dthrottle::Rule;
use dthrottle::internals::cluster::Settings;
use dthrottle::internals::cluster::wire::DatagramKind;

use super::net::{MILLI, Net, SECOND, address, keys};

const PERIOD: u64 = 5 * SECOND;

fn periodic(settings: &mut Settings) {
    settings.periodic = true;
    settings.period = Duration::from_nanos(PERIOD);
}

/// Two nodes, immediately after both sent a report.
fn two_nodes() -> Net {
    let mut net = Net::new();
    for _ in 0..2 {
        net.start(Rule::per_second(1).burst(10), periodic);
    }
    net.run(PERIOD + 100 * MILLI);
    net
}

/// Returns how many reports a node sent so far.
fn reports(net: &Net, node: usize) -> usize {
    let of = |bytes: &[u8]| keys().open(&mut bytes.to_vec()).unwrap().0.kind;
    let sent = net.sent.iter().filter(|datagram| datagram.from == address(node));
    sent.filter(|datagram| of(&datagram.bytes) == DatagramKind::Report).count()
}

#[test]
fn the_worked_example_of_the_document_holds() {
    let mut net = two_nodes();
    assert!((0..9).all(|_| net.allow(0, "C")));
    assert!((0..8).all(|_| net.allow(1, "C")));
    assert_eq!((net.balance(0, "C"), net.balance(1, "C")), (1, 2), "t = 0.1");
    assert!(net.allow(0, "C") && !net.allow(0, "C"));
    assert_eq!((net.balance(0, "C"), net.balance(1, "C")), (0, 2), "t = 0.2");
    let before = reports(&net, 0);
    for second in 1..5 {
        net.run(SECOND);
        let shown = (net.balance(0, "C"), net.balance(1, "C"));
        assert_eq!(shown, (second, 2 + second), "t = {second}: neither has a report of the other");
    }
    assert_eq!(reports(&net, 0), before);
    net.run(SECOND);
    assert_eq!(reports(&net, 0), before + 1);
    assert_eq!((net.balance(0, "C"), net.balance(1, "C")), (-3, -3), "t = 5.1: -8 + 5");
    assert!(!net.allow(0, "C") && !net.allow(1, "C"));
    for (second, balance) in (5..10).zip(-3..) {
        let shown = (net.balance(0, "C"), net.balance(1, "C"));
        assert_eq!(shown, (balance, balance), "t = {second}");
        net.run(SECOND);
    }
    assert!(net.allow(0, "C") && net.allow(1, "C"));
}

/// The rate does not change if there is nothing to report, or if a bucket is empty.
#[test]
fn the_rate_of_reports_is_constant() {
    let mut net = two_nodes();
    let before = reports(&net, 1);
    while net.allow(1, "C") {}
    net.run(20 * PERIOD);
    assert_eq!(reports(&net, 1) - before, 20);
}

#[test]
fn eager_nodes_report_an_empty_bucket_at_once() {
    let mut net = Net::of(2, &Rule::per_second(1).burst(10));
    let before = reports(&net, 0);
    while net.allow(0, "C") {}
    net.run(100 * MILLI);
    assert!(reports(&net, 0) > before, "negative control for the tests above");
    assert_eq!(net.balance(1, "C"), 0);
}
