//! Busy responses that one node received, and their effect on other nodes.

use std::time::Duration;

use dthrottle::busy::{Mode, Recover};
use dthrottle::internals::busy::{BusyEntry, MAX_ENTRIES, write_busy};
use dthrottle::internals::cluster::wire::{DatagramKind, Envelope, write_payload};
use dthrottle::{BusyConfig, BusyThrottle, Clock, Config, Rule};

use super::net::{Datagram, MILLI, Net, SECOND, address, keys};

const API: &str = "api.example.com";

/// Adds a busy throttle to a node. `shares` says whether it shares its busy responses.
fn throttle(net: &mut Net, node: usize, config: &BusyConfig, shares: bool) -> BusyThrottle {
    let node = &mut net.nodes[node];
    let (clock, key) = (Clock::Manual(node.clock.clone()), keys().fingerprint_key());
    let busy = BusyThrottle::with_key(config.clone(), clock, key).unwrap();
    node.engine.set_payload(busy.payload(shares));
    busy
}

/// A network of nodes, each with a busy throttle.
fn net(shares: &[bool], config: &BusyConfig) -> (Net, Vec<BusyThrottle>) {
    let mut net = Net::new();
    for _ in shares {
        net.start(Rule::per_second(1), |_| {});
    }
    net.run(3 * SECOND);
    let busy = shares.iter().enumerate();
    let busy = busy.map(|(node, shares)| throttle(&mut net, node, config, *shares)).collect();
    (net, busy)
}

fn limits(busy: &[BusyThrottle]) -> Vec<Option<f64>> {
    busy.iter().map(|busy| busy.limit(API, busy.now())).collect()
}

/// Sends 100 requests per second from each node, for this time.
fn send(net: &mut Net, busy: &[BusyThrottle], time: u64) {
    for _ in 0..time / (10 * MILLI) {
        for busy in busy {
            if busy.should_send(API, busy.now()) {
                busy.on_ok(API, busy.now());
            }
        }
        net.run(10 * MILLI);
    }
}

fn sent_by(net: &Net, node: usize) -> usize {
    let is_busy = |sent: &&Datagram| sent.bytes[3] == DatagramKind::Payload as u8;
    net.sent.iter().filter(is_busy).filter(|sent| sent.from == address(node)).count()
}

#[test]
fn a_busy_response_of_one_node_limits_all_nodes_that_share_busy_responses() {
    let (mut net, busy) = net(&[true, true, false, true], &BusyConfig::new());
    send(&mut net, &busy, 2 * SECOND);
    busy[0].on_busy(API, busy[0].now(), None);
    net.run(30 * MILLI);
    let slow = limits(&busy);
    let is_about = |node: usize, limit: f64| slow[node].is_some_and(|it| (it - limit).abs() < 4.0);
    assert!(is_about(0, 50.0) && is_about(1, 71.0) && is_about(3, 71.0), "{slow:?}");
    assert_eq!(slow[2], None, "off by default");
    assert_eq!(busy[1].stats(busy[1].now()).remote_busy, 1);
    assert_eq!(busy[2].stats(busy[2].now()).remote_busy, 0);
    // A node that does not share sends no payloads either.
    busy[2].on_busy("other", busy[2].now(), None);
    net.run(SECOND);
    assert_eq!(busy[0].limit("other", busy[0].now()), None);
    assert_eq!(sent_by(&net, 2), 0);
}

#[test]
fn a_report_of_a_peer_is_never_sent_again() {
    let (mut net, busy) = net(&[true; 3], &BusyConfig::new());
    send(&mut net, &busy, SECOND);
    busy[0].on_busy(API, busy[0].now(), Some(Duration::from_secs(2)));
    send(&mut net, &busy, 5 * SECOND);
    assert_eq!(sent_by(&net, 0), 2 * 2, "to two peers, twice");
    assert_eq!((sent_by(&net, 1), sent_by(&net, 2)), (0, 0));
    assert!(busy.iter().all(|busy| busy.stats(busy.now()).cuts <= 1));
    // A local response within a second of a report contains nothing new; a later one does.
    busy[1].on_busy(API, busy[1].now(), None);
    net.run(100 * MILLI);
    assert_eq!(sent_by(&net, 1), 4);
    busy[2].on_busy(API, busy[2].now(), None);
    net.run(100 * MILLI);
    assert_eq!(sent_by(&net, 2), 0, "its limit was cut a moment ago");
}

#[test]
fn the_rest_of_a_pause_is_shared() {
    let config = BusyConfig::new().max_pause(Duration::from_secs(60));
    let (mut net, busy) = net(&[true, true], &config);
    send(&mut net, &busy, SECOND);
    busy[0].on_busy(API, busy[0].now(), Some(Duration::from_secs(30)));
    net.run(SECOND);
    let waits = [0, 1].map(|i| busy[i].turn(API, busy[i].now()).wait.as_millis());
    assert_eq!(waits[0], 29_000);
    assert!((28_990..=29_010).contains(&waits[1]), "{waits:?}");
    // A pause of a peer is limited to this node's own `max_pause`.
    let patient = BusyConfig::new().max_pause(Duration::from_secs(5000));
    let patient = throttle(&mut net, 0, &patient, true);
    patient.on_busy(API, patient.now(), Some(Duration::from_secs(4000)));
    net.run(SECOND);
    let wait = busy[1].turn(API, busy[1].now()).wait;
    assert!((55..=60).contains(&wait.as_secs()), "{wait:?}");
}

/// A node that exchanges only busy responses has applied all reports but has no buckets.
#[test]
fn a_node_without_rules_sends_no_snapshot() {
    let rule = || Rule::per_second(1).burst(100);
    let mut net = Net::new();
    net.start(rule(), |_| {});
    net.start(None, |_| {});
    net.run(3 * SECOND);
    while net.allow(0, "tag") {}
    net.run(SECOND);
    // The new one meets the other first.
    net.start(rule(), |_| {});
    net.lose = Box::new(|datagram| [datagram.from, datagram.to] == [address(0), address(2)]);
    net.run(140 * MILLI);
    net.lose = Box::new(|_| false);
    net.run(SECOND);
    assert!(net.balance(2, "tag") < 10, "{}", net.balance(2, "tag"));
}

/// The rules come from another process of the table, after this one started the exchange.
#[test]
fn a_node_without_rules_gets_a_snapshot_for_other_processes_of_its_table() {
    let mut net = Net::new();
    net.start(Rule::per_second(1).burst(100), |_| {});
    net.run(SECOND);
    while net.allow(0, "tag") {}
    net.start(None, |_| {});
    let rules = "rate = '1/s'\nburst = 100\ncluster = { name = 'test', without_secret = true }";
    let rules = Config::from_toml(rules).unwrap();
    let other = net.nodes[1].throttle.reload(rules).unwrap();
    net.run(400 * MILLI);
    let balance = other.peek("tag").unwrap().balance;
    assert!(balance < 10, "{balance}");
}

#[test]
fn a_query_leaves_the_report_to_the_next_request() {
    let (mut net, busy) = net(&[true, true], &BusyConfig::new());
    send(&mut net, &busy, SECOND);
    net.run(70 * SECOND);
    busy[0].on_busy(API, busy[0].now(), None);
    net.run(50 * MILLI);
    busy[1].limit(API, busy[1].now());
    assert!(busy[1].turn(API, busy[1].now()).limit.is_some());
    // Forgetting a service also removes reports that were not applied yet.
    busy[0].on_busy(API, busy[0].now(), Some(Duration::from_secs(30)));
    net.run(50 * MILLI);
    busy[1].forget(API);
    assert!(busy[1].turn(API, busy[1].now()).allowed);
}

/// Either of the two transmissions is lost.
#[test]
fn a_payload_that_is_lost_once_arrives() {
    for lost in 0..2 {
        let (mut net, busy) = net(&[true, true], &BusyConfig::new());
        let mut seen = 0;
        net.lose = Box::new(move |datagram| {
            let is_busy = datagram.bytes[3] == DatagramKind::Payload as u8;
            seen += i32::from(is_busy);
            is_busy && seen - 1 == lost
        });
        busy[0].on_busy(API, busy[0].now(), Some(Duration::from_secs(30)));
        net.run(100 * MILLI);
        let waits = [0, 1].map(|i| busy[i].turn(API, busy[i].now()).wait.as_millis());
        assert!(waits[0].abs_diff(waits[1]) <= 10, "{waits:?} with number {lost} lost");
    }
}

/// In the document's arithmetic every busy response counts, so a duplicate would change the limit.
#[test]
fn a_payload_that_arrives_several_times_counts_once() {
    let config = BusyConfig::new().mode(Mode::Document(Recover::Rate(3.0)));
    let (mut net, busy) = net(&[true, true], &config);
    net.copies = 3;
    busy.iter().for_each(|busy| assert!(busy.should_send(API, busy.now())));
    for _ in 0..5 {
        busy[0].on_busy(API, busy[0].now(), None);
    }
    net.run(300 * MILLI);
    // A peer counts the response in the second in which the report arrives.
    assert!(busy[1].should_send(API, busy[1].now()));
    net.run(SECOND);
    let limits = limits(&busy);
    assert_eq!(limits[0], Some(9_999_999.0 * 4.0 / 32.0));
    assert_eq!(limits[0], limits[1]);
}

#[test]
fn a_report_limits_the_first_local_call_of_a_service() {
    let (mut net, busy) = net(&[true, true], &BusyConfig::new());
    busy[0].on_busy(API, busy[0].now(), None);
    net.run(200 * MILLI);
    assert_eq!(busy[1].stats(busy[1].now()).services, 0);
    let turn = busy[1].turn(API, busy[1].now());
    assert_eq!(turn.limit, Some(1.0), "the first limit is the floor");
    assert_eq!(busy[1].stats(busy[1].now()).services, 1);
    // A minute later the report has expired.
    busy[0].on_busy("old", busy[0].now(), None);
    net.run(100 * MILLI);
    net.run(61 * SECOND);
    assert_eq!(busy[1].turn("old", busy[1].now()).limit, None);
}

/// The process that requests sharing need not run the exchange.
#[test]
fn a_request_to_share_is_valid_for_a_few_seconds() {
    let (mut net, busy) = net(&[false, true], &BusyConfig::new());
    let request = || busy[0].payload(true).standby();
    request();
    busy[0].on_busy(API, busy[0].now(), None);
    net.run(100 * MILLI);
    assert!(busy[1].turn(API, busy[1].now()).limit.is_some());
    // If the request is not repeated it expires. Responses from the time after that are not sent
    // later.
    net.run(5 * SECOND);
    busy[0].on_busy("late", busy[0].now(), None);
    net.run(100 * MILLI);
    assert_eq!(busy[1].turn("late", busy[1].now()).limit, None);
    net.run(11 * SECOND);
    request();
    net.run(100 * MILLI);
    assert_eq!(busy[1].turn("late", busy[1].now()).limit, None);
}

fn send_hostile(net: &mut Net, to: usize, entries: &[BusyEntry]) {
    let malicious = net.nodes[0].engine.origin();
    let number = 1_000_000 + net.sent.len() as u64;
    let (mut body, mut bytes) = (Vec::new(), Vec::new());
    write_payload(number, 0, &write_busy(entries), &mut body);
    let envelope =
        Envelope { kind: DatagramKind::Payload, flags: 0, sender: malicious, packet: number };
    keys().seal(&envelope, &body, &mut bytes);
    net.send(Datagram { from: address(0), to: address(to), bytes });
    net.run(2 * MILLI);
}

/// A malicious peer that has the key can neither remove nor slow services with local calls.
#[test]
fn a_peer_that_reports_many_services_evicts_no_local_service() {
    let (mut net, busy) = net(&[true, true], &BusyConfig::new());
    let names: Vec<String> = (0..300).map(|i| format!("service {i}")).collect();
    let now = busy[1].now();
    for name in &names {
        assert!(busy[1].should_send(name, now));
        busy[1].on_busy(name, now, Some(Duration::from_secs(600)));
    }
    let before = busy[1].stats(busy[1].now());
    let mut word = 1_u64;
    for _ in 0..1500 {
        let entry = |_| {
            word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            BusyEntry { service: word, answers: 1, age_us: 0, pause_us: 1 << 40 }
        };
        send_hostile(&mut net, 1, &(0..MAX_ENTRIES).map(entry).collect::<Vec<_>>());
    }
    let after = busy[1].stats(busy[1].now());
    assert_eq!((after.services, after.forgotten), (before.services, before.forgotten));
    assert_eq!((after.services, after.forgotten), (300, 0));
    let kept = |name| !busy[1].turn(name, busy[1].now()).allowed;
    assert!(names.iter().all(kept), "all services are still paused");
    // Services that only peers reported are evicted for one with local calls.
    assert!(busy[1].should_send("a new one", busy[1].now()));
    let late = busy[1].stats(busy[1].now());
    assert_eq!((late.services, late.forgotten), (after.services + 1, after.forgotten));
}

#[test]
fn busy_responses_are_stored_until_there_is_a_peer() {
    let mut net = Net::new();
    net.start(None, |_| {});
    let alone = throttle(&mut net, 0, &BusyConfig::new(), true);
    net.run(100 * MILLI);
    alone.on_busy(API, alone.now(), None);
    net.run(100 * MILLI);
    net.start(None, |_| {});
    let late = throttle(&mut net, 1, &BusyConfig::new(), true);
    net.run(500 * MILLI);
    assert!(late.turn(API, late.now()).limit.is_some());
}

#[test]
fn a_node_that_leaves_sends_all_its_busy_responses() {
    let (mut net, busy) = net(&[true, true], &BusyConfig::new());
    let services: Vec<String> = (0..200).map(|i| format!("service {i}")).collect();
    for service in &services {
        busy[0].on_busy(service, busy[0].now(), None);
    }
    let now = net.now;
    net.nodes[0].engine.leave(now);
    net.run(SECOND);
    let turns = services.iter().map(|service| busy[1].turn(service, busy[1].now()));
    let slowed = turns.filter(|turn| turn.limit.is_some()).count();
    // A few services may have found no free record.
    assert!(slowed > 190, "{slowed} of 200");
}

#[test]
fn peers_are_counted_while_the_exchange_runs() {
    let (mut net, busy) = net(&[true, true], &BusyConfig::new());
    net.run(20 * MILLI);
    assert_eq!(busy[0].stats(busy[0].now()).peers, 1);
    // Simulates a killed process.
    net.nodes.truncate(1);
    net.nodes[0].next_timeout = u64::MAX;
    let later = busy[0].now() + Duration::from_secs(20);
    assert_eq!(busy[0].stats(later).peers, 0);
}
