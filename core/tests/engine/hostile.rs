//! Datagrams of attackers on the same network, and of malicious peers.

use dthrottle::Rule;
use dthrottle::internals;
use dthrottle::internals::cluster::wire::{
    DatagramKind, DropCause, Envelope, Hello, Keys, ReportEntry, ReportWriter, Secrets, Section,
    write_digest,
};
use dthrottle::internals::cluster::{Counter, Origin};

use super::net::{Datagram, MILLI, Net, SECOND, address};

fn rule() -> Rule {
    Rule::per_second(1).burst(10)
}

fn counted(net: &Net, node: usize, counter: usize) -> u64 {
    internals::exchange(&net.nodes[node].throttle).counter(counter)
}

#[test]
fn replayed_datagrams_change_nothing() {
    let mut net = Net::of(3, &rule());
    assert!((0..6).all(|i| net.allow(i % 3, "tag")));
    net.run(SECOND);
    let before: Vec<i64> = (0..3).map(|node| net.balance(node, "tag")).collect();
    let recorded = net.sent.clone();
    for mut datagram in recorded {
        for node in 0..3 {
            datagram.to = address(node);
            net.send(datagram.clone());
        }
    }
    net.run(10 * MILLI);
    let after: Vec<i64> = (0..3).map(|node| net.balance(node, "tag")).collect();
    assert_eq!(after, before);
    assert!(counted(&net, 0, Counter::DroppedReplay.index()) > 0);
}

/// A restarted node does not know which datagrams it has received, but replayed reports must not
/// count.
#[test]
fn replayed_datagrams_change_nothing_after_a_restart() {
    let mut net = Net::of(2, &rule());
    assert!((0..6).all(|_| net.allow(0, "tag")));
    net.run(SECOND);
    // The node that sent the reports does not run any more.
    net.nodes[0].next_timeout = u64::MAX;
    net.lose = Box::new(|datagram| datagram.from == address(0) || datagram.to == address(0));
    net.run(20 * SECOND);
    let recorded = net.sent.clone();
    net.restart(1, rule());
    net.run(SECOND);
    net.lose = Box::new(|_| false);
    let own = address(1);
    for datagram in recorded.into_iter().filter(|datagram| datagram.to == own) {
        net.send(datagram);
    }
    // Challenges must not reach the node that does not run any more.
    net.lose = Box::new(|datagram| datagram.to == address(0));
    net.run(SECOND);
    assert_eq!(net.balance(1, "tag"), 10);
    assert!(counted(&net, 1, Counter::DroppedUnproven.index()) > 0);
}

#[test]
fn datagrams_without_the_right_key_are_dropped_and_counted() {
    let mut net = Net::of(2, &rule());
    let from = address(9);
    let secrets =
        Secrets::Shared { cluster: "test", secret: b"another secret..", packet_keys: &[] };
    let sender = Origin { node: 9, incarnation: 9 };
    let envelope = Envelope { kind: DatagramKind::Leave, flags: 0, sender, packet: 1 };
    let mut sealed = Vec::new();
    Keys::new(&secrets).seal(&envelope, &[], &mut sealed);
    let mut other_cluster = Vec::new();
    Keys::unsealed("other").seal(&envelope, &[], &mut other_cluster);
    let noise: Vec<u8> = (0..200).map(|i| (i * 37) as u8).collect();
    for bytes in [sealed, other_cluster, noise, vec![], vec![0; 5000]] {
        net.send(Datagram { from, to: address(0), bytes });
    }
    net.run(10 * MILLI);
    let causes = [DropCause::Cluster, DropCause::Magic, DropCause::Short, DropCause::Long];
    let counts = causes.map(|cause| counted(&net, 0, Counter::dropped_index(cause)));
    assert_eq!(counts, [1; 4], "by cause");
    let wrong_key = [DropCause::Key, DropCause::Auth]
        .map(|cause| counted(&net, 0, Counter::dropped_index(cause)));
    assert_eq!(wrong_key.iter().sum::<u64>(), 1);
    assert_eq!(net.nodes[0].engine.peers(), 1);
}

/// A malicious peer that has the key.
#[test]
fn reports_with_impossible_values_do_limited_damage() {
    let mut net = Net::of(2, &rule());
    let malicious = net.nodes[1].engine.origin();
    let mut packet = 1_000_000;
    let mut send = |net: &mut Net, body: &[u8]| {
        packet += 1;
        let envelope = Envelope { kind: DatagramKind::Report, flags: 0, sender: malicious, packet };
        let mut bytes = Vec::new();
        super::net::keys().seal(&envelope, body, &mut bytes);
        net.send(Datagram { from: address(1), to: address(0), bytes });
        net.run(5 * MILLI);
    };
    let mut writer = ReportWriter::new();
    let rule_id = internals::exchange(&net.nodes[0].throttle).rules()[0].id;
    let entry = ReportEntry { fingerprint: 1 << 20, hits: u32::MAX.into(), saturated: true };
    let section = Section { rule: rule_id, quantum: 1 << 40, age_us: 1 << 40 };
    assert!(writer.push(&section, entry));
    let body = writer.finish(1, 1, false).to_vec();
    send(&mut net, &body);
    assert_eq!(net.nodes[0].throttle.stats().clamped, 1);
    // Report numbers far ahead must not make the node wait forever or use much memory.
    let body = writer.finish(1 << 60, 1 << 60, false).to_vec();
    send(&mut net, &body);
    let mut unknown = body.clone();
    unknown[13..21].fill(0xee);
    unknown[..8].copy_from_slice(&((1_u64 << 60) + 1).to_be_bytes());
    send(&mut net, &unknown);
    assert_eq!(counted(&net, 0, Counter::UnknownRule.index()), 1);
    let mut many = body;
    many[21..23].fill(0xff);
    many[..8].copy_from_slice(&((1_u64 << 60) + 2).to_be_bytes());
    send(&mut net, &many);
    assert_eq!(
        counted(&net, 0, Counter::dropped_index(DropCause::Malformed)),
        1,
        "a count beyond the body"
    );
    net.run(30 * SECOND);
    assert!(net.allow(0, "tag"), "other tags are not affected");
}

/// An attacker without the key replays a greeting with the address of a victim.
#[test]
fn replayed_greetings_are_answered_at_a_limited_rate() {
    let mut net = Net::of(2, &rule());
    let sender = Origin { node: 4242, incarnation: 1 };
    let hello = Hello {
        challenge: 7,
        echo: 0,
        top: 0,
        rules: 0,
        slack_us: 0,
        slack_age_us: 0,
        address: address(7),
    };
    let (mut body, mut bytes) = (Vec::new(), Vec::new());
    hello.write(&mut body);
    let envelope = Envelope { kind: DatagramKind::Hello, flags: 0, sender, packet: 1 };
    super::net::keys().seal(&envelope, &body, &mut bytes);
    net.sent.clear();
    for _ in 0..5000 {
        let now = net.now;
        net.nodes[0].engine.handle_datagram(now, address(77), &mut bytes.clone());
    }
    net.drain_outputs(0);
    let answers = net.sent.iter().filter(|datagram| datagram.to == address(77)).count();
    assert_eq!(answers, 1);
    net.start(rule(), |_| {});
    net.run(3 * SECOND);
    assert_eq!(net.nodes[2].engine.peers(), 2, "other nodes can still join");
}

/// A malicious peer that has the key can invent any number of origins.
#[test]
fn the_number_of_known_origins_is_limited() {
    let mut net = Net::of(2, &rule());
    let malicious = net.nodes[1].engine.origin();
    for round in 0..200 {
        let origin = |i| Origin { node: 1_000_000 + round * 60 + i, incarnation: 1 };
        let list: Vec<(Origin, u64)> = (0..60).map(|i| (origin(i), 5)).collect();
        let (mut body, mut bytes) = (Vec::new(), Vec::new());
        write_digest(&list, &mut body);
        let packet = 1_000_000 + round;
        let envelope = Envelope { kind: DatagramKind::Digest, flags: 1, sender: malicious, packet };
        super::net::keys().seal(&envelope, &body, &mut bytes);
        let now = net.now;
        net.nodes[0].engine.handle_datagram(now, address(1), &mut bytes);
    }
    assert!(net.nodes[0].engine.origins() <= 4096, "{}", net.nodes[0].engine.origins());
}

/// A malicious peer claims a far too high report number of another node.
#[test]
fn reports_are_applied_after_a_wrong_digest_of_another_peer() {
    let mut net = Net::of(3, &Rule::per_hour(1).burst(10));
    assert!(net.allow(2, "earlier"));
    net.run(SECOND);
    let (honest, malicious) = (net.nodes[2].engine.origin(), net.nodes[1].engine.origin());
    let (mut body, mut bytes) = (Vec::new(), Vec::new());
    write_digest(&[(honest, 1 << 61)], &mut body);
    let envelope =
        Envelope { kind: DatagramKind::Digest, flags: 1, sender: malicious, packet: 1_000_000 };
    super::net::keys().seal(&envelope, &body, &mut bytes);
    net.send(Datagram { from: address(1), to: address(0), bytes });
    net.run(20 * SECOND);
    assert!((0..6).all(|_| net.allow(2, "tag")));
    net.run(SECOND);
    assert_eq!(net.balance(0, "tag"), 4);
}
