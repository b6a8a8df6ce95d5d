//! Busy responses as payloads between stores.

use std::time::Duration;

use crate::cluster::MAX_PAYLOAD;
use crate::{BusyConfig, BusyThrottle, ClusterConfig, ManualClock};

/// Returns two nodes of a cluster, and their clock.
fn nodes() -> (ManualClock, [BusyThrottle; 2]) {
    let clock = ManualClock::new();
    clock.set(Duration::from_secs(1000)).unwrap();
    let config = BusyConfig::new().cluster(ClusterConfig::new("test"));
    let node = || BusyThrottle::with_clock(config.clone(), clock.clone()).unwrap();
    (clock.clone(), [node(), node()])
}

#[test]
fn the_age_of_a_payload_shortens_its_pauses() {
    for (age, wait) in [(0, Some(60)), (20, Some(40)), (59, Some(1)), (60, None)] {
        let (_, [one, other]) = nodes();
        one.on_busy("a", one.now(), Some(Duration::from_secs(60)));
        let bytes = one.payload(true).take().unwrap();
        assert!(one.payload(true).take().is_none(), "a payload is taken once");
        assert!(other.payload(true).apply(age * 1_000_000_000, &bytes));
        let turn = other.turn("a", other.now());
        assert_eq!((!turn.allowed).then_some(turn.wait.as_secs()), wait, "{age} s old");
    }
}

#[test]
fn services_that_do_not_fit_into_a_payload_are_in_the_next_one() {
    let (_, [one, other]) = nodes();
    let names: Vec<String> = (0..200).map(|i| format!("service {i}")).collect();
    names.iter().for_each(|name| one.on_busy(name, one.now(), Some(Duration::from_secs(60))));
    let (mut from, mut to) = (one.payload(true), other.payload(true));
    let mut payloads = 0;
    while let Some(bytes) = from.take() {
        payloads += 1;
        assert!(bytes.len() <= MAX_PAYLOAD);
        assert!(to.apply(0, &bytes));
    }
    assert_eq!(payloads, 4);
    let reported = names.iter().filter(|name| !other.should_send(name, other.now())).count();
    // A few may have found no record.
    assert!(reported > 190, "{reported} of 200");
}

#[test]
fn malformed_payloads_change_nothing() {
    let (_, [one, other]) = nodes();
    one.on_busy("a", one.now(), Some(Duration::from_secs(60)));
    let bytes = one.payload(true).take().unwrap();
    for len in 0..bytes.len() {
        assert!(!other.payload(true).apply(0, &bytes[..len]), "{len} bytes");
    }
    assert!(other.should_send("a", other.now()));
}

/// A process without the setting shares for a few seconds after a waiting process with the setting
/// requested it.
#[test]
fn one_process_that_requests_sharing_is_enough() {
    let (clock, [one, other]) = nodes();
    let mut from = one.payload(false);
    one.on_busy("a", one.now(), Some(Duration::from_secs(60)));
    assert!(from.take().is_none(), "no process has requested it");
    one.payload(false).standby();
    assert!(from.take().is_none(), "a process without the setting requests nothing");
    one.payload(true).standby();
    let bytes = from.take().unwrap();
    assert!(other.payload(false).apply(0, &bytes));
    assert!(other.should_send("a", other.now()), "ignored without the setting");
    clock.advance(Duration::from_secs(5));
    one.on_busy("b", one.now(), Some(Duration::from_secs(60)));
    assert!(from.take().is_none(), "the request has expired");
}

#[test]
fn peers_are_counted_while_the_exchange_runs() {
    let (clock, [one, _]) = nodes();
    let peers = || one.stats(one.now()).peers;
    assert_eq!(peers(), 0);
    one.payload(false).tick(3);
    assert_eq!(peers(), 3);
    clock.advance(Duration::from_secs(20));
    assert_eq!(peers(), 0);
}
