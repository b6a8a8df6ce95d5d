//! Which services are evicted if there are more services than records, at any time.

use dthrottle::BusyConfig;
use dthrottle::busy::{BusyThrottle, MAX_SERVICES, Recover};

use crate::{at, document, live, throttle};

const OTHERS: u32 = 40 * MAX_SERVICES as u32 / 8;

/// Reports busy responses of `services` services. Returns how many of them have a limit a second
/// later.
fn kept(busy: &BusyThrottle, name: &str, services: u32, now: f64) -> usize {
    let names = || (0..services).map(|i| format!("{name} {i}"));
    for _ in 0..4 {
        names().for_each(|service| busy.on_busy(service, at(now), None));
    }
    names().filter(|service| busy.limit(service, at(now + 1.0)).is_some()).count()
}

#[test]
fn records_from_the_future_are_evicted_first() {
    for late in [40.0, 1e5, 1e9] {
        for busy in [live(), document(Recover::Rate(3.0))] {
            kept(&busy, "late", 3000, late);
            for now in [1.0, 3.0, 30.0, 100.0, 1000.0, 10_000.0] {
                let kept = kept(&busy, &format!("at {now}"), 200, now);
                assert!(kept >= 196, "{kept} of 200 at {now} after {late}");
            }
        }
    }
}

#[test]
fn records_with_limits_from_the_future_are_evicted_first() {
    for busy in [live(), document(Recover::Rate(3.0))] {
        kept(&busy, "late", 3000, 40.0);
        kept(&busy, "late", 3000, 41.0);
        let names = || (0..200_u32).map(u32::to_le_bytes);
        assert!(names().all(|service| busy.should_send(service, at(1.0))));
        let known = names().filter(|service| busy.rate(service, at(1.0)) > 0.0).count();
        assert!(known >= 196, "{known} of 200");
    }
}

#[test]
fn the_least_recently_used_services_are_evicted_first() {
    let busy = live();
    for i in 0..OTHERS {
        let now = at(1.0 + f64::from(i) / 1e6);
        assert!(busy.should_send("used", now) && busy.should_send(i.to_le_bytes(), now));
    }
    assert_eq!(busy.rate("used", at(1.5)), f64::from(OTHERS), "the service was never evicted");
    let limited = live();
    limited.on_busy("used", at(1.0), None);
    for i in 0..OTHERS {
        let now = at(1.0 + f64::from(i) / 1e6);
        limited.turn("used", now);
        assert!(limited.limit("used", now).is_some(), "after {i} others");
        limited.on_busy(i.to_le_bytes(), now, None);
    }
    assert!(limited.stats(at(1.5)).forgotten > 0);
}

#[test]
fn a_service_without_calls_for_a_minute_is_forgotten() {
    let busy = document(Recover::Value(0.1));
    for second in 0..10 {
        busy.on_busy("a", at(f64::from(second)), None);
        busy.on_busy("a", at(f64::from(second)), None);
    }
    assert!(busy.limit("a", at(69.0)).is_some_and(|limit| limit < 1000.0));
    assert!(busy.should_send("a", at(70.0)));
    assert_eq!(busy.limit("a", at(70.0)), None);
}

/// A service that has just answered busy has no capacity, even if nothing else prevents a request.
#[test]
fn no_request_is_sent_immediately_after_a_cut() {
    for floor in [1.0, 10.0] {
        let busy = throttle(BusyConfig::new().floor(floor));
        busy.on_busy("a", at(5.0), None);
        let turn = busy.turn("a", at(5.0));
        assert_eq!((turn.allowed, turn.wait), (false, at(1.0 / floor)));
        assert!(busy.should_send("a", at(5.0 + 1.0 / floor)));
    }
}
