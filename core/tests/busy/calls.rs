//! The results of calls that an application makes, in any order and at any time.

use std::time::Duration;

use dthrottle::BusyConfig;
use dthrottle::busy::{MAX_SERVICES, Recover};

use crate::{at, document, live, passed, throttle};

#[test]
fn without_busy_responses_all_requests_are_allowed() {
    let busy = live();
    for second in 0..5 {
        assert_eq!(passed(&busy, "a", f64::from(second), 1000), 1000);
    }
    assert_eq!(busy.limit("a", at(5.0)), None);
    assert!((busy.rate("a", at(5.0)) - 1000.0).abs() < 1.0);
}

#[test]
fn a_busy_response_halves_the_rate_of_its_service_only() {
    let busy = live();
    for service in ["a", "b"] {
        assert_eq!(passed(&busy, service, 0.0, 1000), 1000);
    }
    busy.on_busy("a", at(1.0), None);
    assert_eq!(busy.limit("a", at(1.0)), Some(500.0));
    let some = passed(&busy, "a", 1.0, 1000);
    assert!((400..=415).contains(&some), "{some}: none at first, then half, then slightly more");
    assert_eq!(passed(&busy, "b", 1.0, 1000), 1000);
}

#[test]
fn the_limit_halves_at_most_once_per_second() {
    let busy = live();
    passed(&busy, "a", 0.0, 1000);
    for i in 0..1000 {
        busy.on_busy("a", at(1.0 + f64::from(i) / 1001.0), None);
    }
    assert_eq!(busy.limit("a", at(1.6995)), Some(500.0));
    assert_eq!(busy.stats(at(2.0)).cuts, 1);
    passed(&busy, "a", 1.0, 1000);
    busy.on_busy("a", at(2.0), None);
    let limit = busy.limit("a", at(2.0)).unwrap();
    assert!((195.0..=215.0).contains(&limit), "{limit}");
}

#[test]
fn a_refused_turn_returns_how_long_to_wait() {
    let busy = live();
    passed(&busy, "a", 0.0, 20);
    busy.on_busy("a", at(1.0), None);
    let turn = busy.turn("a", at(1.0));
    assert!(!turn.allowed, "the service has just answered busy");
    assert_eq!(turn.wait, Duration::from_millis(300));
    assert!(!busy.should_send("a", at(1.0) + turn.wait - Duration::from_nanos(1)));
    assert!(busy.should_send("a", at(1.0) + turn.wait));
    let turn = busy.turn("a", at(1.3));
    assert_eq!((turn.limit, turn.wait), (Some(10.0), Duration::from_millis(100)), "ten per second");
}

#[test]
fn no_request_is_sent_before_the_pause_ends_and_then_the_limit_recovers() {
    for busy in [live(), document(Recover::Rate(3.0))] {
        passed(&busy, "a", 0.0, 1000);
        busy.on_busy("a", at(1.0), Some(at(30.0)));
        // The longest pause counts.
        busy.on_busy("a", at(1.0), Some(at(3.0)));
        for second in 1..31 {
            assert_eq!(passed(&busy, "a", f64::from(second), 10), 0, "{busy:?} at {second}");
        }
        let turn = busy.turn("a", at(11.0));
        assert_eq!((turn.allowed, turn.wait), (false, at(20.0)));
        assert!(busy.should_send("a", at(31.0)), "{busy:?}");
    }
    let busy = live();
    passed(&busy, "a", 0.0, 1000);
    busy.on_busy("a", at(1.0), Some(at(30.0)));
    assert_eq!(busy.limit("a", at(31.69)), Some(500.0));
}

#[test]
fn a_pause_is_limited_to_max_pause() {
    let busy = throttle(BusyConfig::new().max_pause(at(5.0)));
    busy.on_busy("a", at(1.0), Some(Duration::MAX));
    assert_eq!(busy.turn("a", at(1.0)).wait, at(5.0));
    assert!(busy.should_send("a", at(6.0)));
}

#[test]
fn the_limit_never_falls_below_the_floor() {
    for floor in [1.0, 50.0] {
        let busy = throttle(BusyConfig::new().floor(floor));
        for i in 0..597 {
            busy.on_busy("a", at(f64::from(i) / 10.0), None);
        }
        assert_eq!(busy.limit("a", at(59.65)), Some(floor));
        let turn = busy.turn("a", at(59.65));
        assert!(turn.wait <= at(1.0 / floor), "{turn:?}");
        assert!(turn.allowed || busy.should_send("a", at(59.65) + turn.wait));
        assert_eq!(busy.limit("a", at(90.0)), None, "the limit recovers");
    }
    let busy = live();
    busy.on_ok("never", at(1.0));
    assert!(busy.should_send("never", at(1.0)));
}

#[test]
fn requests_are_allowed_again_after_any_number_of_busy_responses() {
    for busy in [live(), document(Recover::Rate(3.0)), document(Recover::Value(0.1))] {
        for i in 0..100_000 {
            busy.on_busy("a", at(f64::from(i) / 1000.0), None);
        }
        let waited = (100..200).position(|second| passed(&busy, "a", f64::from(second), 10) > 0);
        assert!(waited.is_some_and(|seconds| seconds <= 20), "{busy:?}: {waited:?}");
    }
}

#[test]
fn limits_recover_after_time_went_back() {
    for busy in [live(), document(Recover::Rate(3.0))] {
        let late = 1_000_000.0;
        passed(&busy, "a", late, 100);
        busy.on_busy("a", at(late + 1.0), Some(at(1800.0)));
        busy.on_busy("a", at(0.0), None);
        busy.on_ok("a", at(5.0));
        let turn = busy.turn("a", at(10.0));
        assert!(turn.wait <= at(10.0), "{turn:?}: the pause was set with another clock");
        let recovered = (10..70).find(|second| passed(&busy, "a", f64::from(*second), 100) == 100);
        assert!(recovered.is_some(), "{busy:?}: the limit recovers after time went back");
        // Time goes forward and back.
        for i in 0..1000_u32 {
            let time = at(f64::from(i * 7919 % 1000));
            busy.should_send("a", time);
            busy.on_busy("a", time, Some(Duration::ZERO));
        }
        assert!((1000..1100).any(|second| passed(&busy, "a", f64::from(second), 10) == 10));
    }
}

#[test]
fn a_new_pause_counts_after_time_went_back() {
    let busy = throttle(BusyConfig::new().max_pause(at(60.0)));
    busy.on_busy("a", at(100_000.0), Some(at(30.0)));
    busy.on_busy("a", at(10.0), Some(at(30.0)));
    assert_eq!(busy.turn("a", at(12.0)).wait, at(28.0));
}

#[test]
fn calls_accept_the_greatest_times() {
    for busy in [live(), document(Recover::Value(200.0))] {
        for end in [Duration::MAX, Duration::from_nanos(u64::MAX), Duration::ZERO] {
            busy.should_send("a", end);
            busy.on_busy("a", end, Some(Duration::MAX));
            busy.on_ok("a", end);
            busy.turn("a", end);
            busy.stats(end);
        }
    }
}

#[test]
fn a_million_services_share_the_records_of_a_thousand() {
    let busy = live();
    passed(&busy, "busy", 0.0, 100);
    busy.on_busy("busy", at(1.0), Some(at(600.0)));
    for i in 0..1_000_000_u32 {
        assert!(busy.should_send(i.to_le_bytes(), at(1.0 + f64::from(i) / 1e6)));
    }
    let stats = busy.stats(at(2.0));
    assert_eq!(stats.services, MAX_SERVICES as u64);
    assert_eq!((stats.sent, stats.refused, stats.forgotten), (1_000_100, 0, 0));
    assert!(!busy.should_send("busy", at(2.0)), "services with a limit are evicted last");
}

#[test]
fn evicted_services_with_a_limit_count_as_forgotten() {
    let busy = live();
    let services = 2 * MAX_SERVICES as u32;
    for i in 0..services {
        busy.on_busy(i.to_le_bytes(), at(1.0), Some(at(600.0)));
    }
    let forgotten = busy.stats(at(1.0)).forgotten;
    assert_eq!(u64::from(services) - forgotten, busy.stats(at(1.0)).services);
}

#[test]
fn idle_services_are_forgotten() {
    let busy = live();
    for i in 0..100_u32 {
        busy.should_send(i.to_le_bytes(), at(0.0));
    }
    busy.on_busy("asked for a pause", at(0.0), Some(at(600.0)));
    assert_eq!(busy.stats(at(59.0)).services, 101);
    assert_eq!(busy.stats(at(61.0)).services, 1);
    assert!(!busy.should_send("asked for a pause", at(599.0)));
    busy.forget("asked for a pause");
    assert_eq!(busy.stats(at(599.0)).services, 0);
    assert!(busy.should_send("asked for a pause", at(599.0)));
}

/// Includes the first second of the table, when no record can be old.
#[test]
fn a_forgotten_service_is_not_counted() {
    let busy = live();
    for now in [at(0.0), at(1.0)] {
        for service in ["a", "b"] {
            assert!(busy.should_send(service, now));
        }
        assert_eq!(busy.stats(now).services, 2);
        busy.forget("a");
        assert_eq!(busy.stats(now).services, 1);
    }
}

#[test]
fn any_bytes_can_be_the_name_of_a_service() {
    let busy = live();
    let names: [&[u8]; 4] = [b"", b"\0", b"\xff\xfe", &[b'x'; 100_000]];
    for name in names {
        busy.on_busy(name, at(1.0), Some(at(1.0)));
        assert!(!busy.should_send(name, at(1.5)));
    }
}

#[test]
fn after_a_pause_requests_are_spaced() {
    let busy = live();
    passed(&busy, "a", 0.0, 1000);
    busy.on_busy("a", at(1.0), Some(at(2.0)));
    busy.on_busy("a", at(1.1), Some(at(2.0)));
    assert!(!busy.should_send("a", at(3.09)), "the pause of the second response counts");
    let turns = (0..100).filter(|_| busy.should_send("a", at(3.1))).count();
    assert_eq!(turns, 1, "the limit allows fifty in a tenth of a second");
    assert!(busy.should_send("a", at(3.102)), "500 per second");
}

#[test]
fn busy_responses_with_pauses_cut_once_per_second() {
    for pause in [0.0, 0.5, 1.0] {
        let busy = live();
        passed(&busy, "a", 0.0, 1000);
        busy.on_busy("a", at(1.0), Some(at(pause)));
        assert_eq!(busy.limit("a", at(1.0)), Some(500.0));
        // A response to a request sent before the cut.
        busy.on_busy("a", at(1.01), Some(at(pause)));
        assert_eq!(busy.limit("a", at(1.01)), Some(500.0), "{pause}");
        // All allowed requests are sent, and the service answers busy again.
        let (first, now) = (1010, 2050 + (600.0 * pause) as u32);
        for ms in first..now {
            busy.should_send("a", at(f64::from(ms) / 1000.0));
        }
        let now = at(f64::from(now) / 1000.0);
        let limit = busy.limit("a", now).unwrap();
        busy.on_busy("a", now, Some(at(pause)));
        let left = busy.limit("a", now).unwrap() / limit;
        assert!((0.2..=0.5).contains(&left), "pause {pause}: {left} of {limit}");
    }
}

#[test]
fn a_pause_counts_for_a_call_with_a_slightly_earlier_time() {
    let busy = live();
    busy.on_busy("a", at(10.001), Some(at(7200.0)));
    busy.on_busy("a", at(10.0), Some(at(1.0)));
    let turn = busy.turn("a", at(12.0));
    assert_eq!((turn.allowed, turn.wait), (false, at(3598.001)));
}

#[test]
fn requests_continue_after_a_cut_if_the_limit_is_at_the_floor() {
    for floor in [10.0, 10.1] {
        let busy = throttle(BusyConfig::new().floor(floor));
        busy.on_busy("a", at(1.0), None);
        assert!(busy.turn("a", at(1.0)).wait <= at(1.0 / floor), "{floor}");
    }
}

#[test]
fn a_retry_after_of_zero_is_no_pause() {
    let busy = live();
    passed(&busy, "a", 0.0, 1000);
    busy.on_busy("a", at(1.0), Some(Duration::ZERO));
    // Fewer requests than the limit allows.
    (60..90).for_each(|i| assert!(busy.should_send("a", at(1.0 + f64::from(i) / 100.0))));
    busy.on_busy("a", at(1.995), Some(Duration::ZERO));
    busy.on_busy("a", at(2.005), Some(Duration::ZERO));
    let limit = busy.limit("a", at(2.005)).unwrap();
    assert!((14.0..=15.0).contains(&limit), "{limit}: half of the requests of the last second");
}
