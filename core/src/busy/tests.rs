//! What no application can time: calls whose place has gone to another since they found it, and news
//! of peers.

use super::*;
use crate::ManualClock;

const NOW: u64 = 1_000_000_000_000;

/// A throttle, the key and the place of a service, and another service that has the place by now.
fn late(act: impl FnOnce(&BusyThrottle, Record<'_>, ServiceKey)) {
    let busy = BusyThrottle::with_clock(BusyConfig::new(), ManualClock::new()).unwrap();
    let key = busy.key(b"late");
    let record = busy.record(key, NOW);
    let table = &busy.host().table;
    // Others come, a little later each, until it has to go.
    let mut others = (1..1_000_000_u64).map(|i| (busy.key(&i.to_le_bytes()), NOW + i));
    let (other, now) = others
        .find(|(other, now)| {
            busy.record(*other, *now);
            table.find_service(key).is_none()
        })
        .unwrap();
    act(&busy, record, key);
    let other = busy.known(other, now).unwrap();
    assert!(std::ptr::eq(other.service, record.service));
    assert_eq!(other.limit(now), None);
    assert!(other.turn(now).allowed, "what it was never told does not hold it back");
}

#[test]
fn a_late_busy_answer_limits_nobody() {
    late(|busy, record, key| busy.is_busy(record, key, NOW, None));
    late(|busy, record, key| busy.is_busy(record, key, NOW, Some(NOW)));
}

#[test]
fn late_news_limit_nobody() {
    let news = News { at_ns: NOW, answers: 3, until_ns: 0 };
    late(|busy, record, key| busy.heed(record, key, NOW, news));
    let news = News { until_ns: 2 * NOW, ..news };
    late(|busy, record, key| busy.heed(record, key, NOW, news));
}

/// A clock may count from any epoch, also where times are stored in fewer bits.
#[test]
fn news_of_peers_limit_a_service_at_unix_time() {
    let clock = ManualClock::new();
    let busy = BusyThrottle::with_clock(BusyConfig::new(), clock.clone()).unwrap();
    clock.set(Duration::from_secs(1_760_000_000)).unwrap();
    assert!(busy.should_send("a", busy.now()));
    let now = busy.host().now();
    let news = News { at_ns: now, answers: 1, until_ns: 0 };
    assert!(busy.host().table.hear(busy.key(b"a").name(), now, news));
    assert!(busy.limit("a", busy.now()).is_some());
    assert_eq!(busy.now(), Duration::from_secs(1_760_000_000), "the clock's own epoch");
    clock.advance(Duration::from_secs(60));
    assert_eq!(busy.limit("a", busy.now()), None);
}

/// Also of a service that only peers have called so far.
#[test]
fn what_peers_said_is_forgotten_with_a_service() {
    for (is_asked, is_forgotten) in [(false, false), (false, true), (true, false), (true, true)] {
        let busy = BusyThrottle::with_clock(BusyConfig::new(), ManualClock::new()).unwrap();
        let now = Duration::from_nanos(NOW);
        if is_asked {
            assert!(busy.should_send("a", now));
        }
        let news = News { at_ns: NOW, answers: 1, until_ns: NOW + 1_000_000_000 };
        assert!(busy.host().table.hear(busy.key(b"a").name(), NOW, news));
        if is_forgotten {
            busy.forget("a");
        }
        assert_eq!(busy.should_send("a", now), is_forgotten);
    }
}
