//! Calls whose record has been given to another service since they found it, and reports of peers.

use std::time::Duration;

use crate::busy::record::Record;
use crate::busy::report::BusyReport;
use crate::busy::service::ServiceKey;
use crate::{BusyConfig, BusyThrottle, ManualClock};

const NOW: u64 = 1_000_000_000_000;

/// Calls `act` with a throttle, the key of a service, and a record that now belongs to another
/// service.
fn with_lost_record(act: impl FnOnce(&BusyThrottle, Record<'_>, ServiceKey)) {
    let busy = BusyThrottle::with_clock(BusyConfig::new(), ManualClock::new()).unwrap();
    let key = busy.key(b"late");
    let record = busy.record(key, NOW);
    // Other services are called, each a little later, until one takes the record.
    let mut others = (1..1_000_000_u64).map(|i| (busy.key(&i.to_le_bytes()), NOW + i));
    let (other, now) = others
        .find(|(other, now)| {
            busy.record(*other, *now);
            busy.0.store.find(key).is_none()
        })
        .unwrap();
    act(&busy, record, key);
    let other = busy.find_record(other, now).unwrap();
    assert!(std::ptr::eq(other.service, record.service));
    assert_eq!(other.limit(now), None);
    assert!(other.turn(now).allowed, "the busy response of another service does not limit it");
}

#[test]
fn a_late_busy_response_does_not_limit_the_new_owner() {
    with_lost_record(|busy, record, key| busy.apply_busy(record, key, NOW, None));
    with_lost_record(|busy, record, key| busy.apply_busy(record, key, NOW, Some(NOW)));
}

#[test]
fn a_late_report_does_not_limit_the_new_owner() {
    let report = BusyReport { at_ns: NOW, answers: 3, until_ns: 0 };
    with_lost_record(|busy, record, key| busy.on_remote_busy(record, key, NOW, report));
    let report = BusyReport { until_ns: 2 * NOW, ..report };
    with_lost_record(|busy, record, key| busy.on_remote_busy(record, key, NOW, report));
}

/// A clock may count from any epoch, even though times are stored in fewer bits.
#[test]
fn a_remote_report_limits_a_service_at_unix_time() {
    let clock = ManualClock::new();
    let busy = BusyThrottle::with_clock(BusyConfig::new(), clock.clone()).unwrap();
    clock.set(Duration::from_secs(1_760_000_000)).unwrap();
    assert!(busy.should_send("a", busy.now()));
    let now = busy.0.store.now();
    let report = BusyReport { at_ns: now, answers: 1, until_ns: 0 };
    assert!(busy.0.store.add_remote_busy(busy.key(b"a").name(), now, report));
    assert!(busy.limit("a", busy.now()).is_some());
    assert_eq!(busy.now(), Duration::from_secs(1_760_000_000), "the clock's own epoch");
    clock.advance(Duration::from_secs(60));
    assert_eq!(busy.limit("a", busy.now()), None);
}

/// Includes services for which there were no local calls.
#[test]
fn forget_forgets_the_reports_of_peers() {
    for (is_called, is_forgotten) in [(false, false), (false, true), (true, false), (true, true)] {
        let busy = BusyThrottle::with_clock(BusyConfig::new(), ManualClock::new()).unwrap();
        let now = Duration::from_nanos(NOW);
        if is_called {
            assert!(busy.should_send("a", now));
        }
        let report = BusyReport { at_ns: NOW, answers: 1, until_ns: NOW + 1_000_000_000 };
        assert!(busy.0.store.add_remote_busy(busy.key(b"a").name(), NOW, report));
        if is_forgotten {
            busy.forget("a");
        }
        assert_eq!(busy.should_send("a", now), is_forgotten);
    }
}
