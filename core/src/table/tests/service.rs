//! Places of services: who gets which, and what goes with them.

use std::sync::atomic::Ordering;

use crate::table::news::News;
use crate::table::service::{IDLE_NS, Moment, Service, ServiceKey, Set, find, hear, take};

const NOW: u64 = 1000 * IDLE_NS;
const NEWS: News = News { at_ns: NOW, answers: 1, until_ns: 0 };

fn key(name: u64) -> ServiceKey {
    ServiceKey::new(name, 7)
}

fn at(now: u64) -> impl Fn() -> Moment {
    move || Moment { now, token: 1 }
}

fn worth(service: &Service) -> u64 {
    service.used_ns.load(Ordering::Relaxed)
}

/// A place by its number.
fn index(set: &Set, service: &Service) -> usize {
    set.iter().position(|other| std::ptr::eq(other, service)).unwrap()
}

/// Takes places for services 1, 2, 3 and so on, each a little later.
fn filled(count: u64) -> Set {
    let set = Set::default();
    for name in 1..=count {
        let (_, lost) = take(&set, key(name), at(NOW + name), worth);
        assert_eq!(lost, 0);
    }
    set
}

#[test]
fn a_new_service_takes_what_is_worth_least() {
    let set = filled(6);
    // Free places, then idle ones, then what was heard, then those in use.
    assert!(hear(&set, 100, at(NOW), NEWS) && find(&set, key(100)).is_none());
    let (free, _) = take(&set, key(7), at(NOW), worth);
    assert_eq!(index(&set, free), 7);
    set[3].used_ns.store(NOW - 2 * IDLE_NS, Ordering::Relaxed);
    let (idle, lost) = take(&set, key(8), at(NOW + 8), worth);
    assert_eq!((index(&set, idle), lost), (3, 0));
    let (heard, lost) = take(&set, key(9), at(NOW + 9), worth);
    assert_eq!((index(&set, heard), lost, heard.take_heard(9)), (6, 0, None));
    let (used, lost) = take(&set, key(10), at(NOW + 10), worth);
    assert_eq!((index(&set, used), lost), (7, NOW), "the one used least lately");
}

#[test]
fn what_was_heard_waits_for_who_asks() {
    let set = filled(8);
    assert!(!hear(&set, 100, at(NOW), NEWS), "nobody's place is taken for hearsay");
    let set = filled(4);
    assert!(
        hear(&set, 100, at(NOW), NEWS)
            && hear(&set, 100, at(NOW), NEWS)
            && hear(&set, 2, at(NOW), NEWS)
    );
    let (own, lost) = take(&set, key(100), at(NOW), worth);
    assert_eq!((own.take_heard(100), lost), (Some(News { answers: 2, ..NEWS }), 0));
    assert_eq!(find(&set, key(2)).unwrap().take_heard(2), Some(NEWS));
    // By other settings it has another place.
    let other = ServiceKey::new(100, 8);
    assert!(!std::ptr::eq(take(&set, other, at(NOW), worth).0, own));
    assert!(hear(&set, 100, at(NOW), NEWS));
    assert_eq!(
        (own.take_heard(100), find(&set, other).unwrap().take_heard(100)),
        (Some(NEWS), Some(NEWS))
    );
}

#[test]
fn nothing_goes_with_a_place() {
    let set = filled(8);
    for service in &set {
        service.state.store(1, Ordering::Relaxed);
        for word in [&service.paused_ns, &service.turn_ns, &service.sent, &service.good] {
            word.store(1, Ordering::Relaxed);
        }
        service.say(service.key().name(), NEWS);
    }
    hear(&set, 1, at(NOW), NEWS);
    let (first, lost) = take(&set, key(9), at(NOW + 9), worth);
    assert_eq!((index(&set, first), lost), (0, NOW + 1));
    assert_eq!((first.state.load(Ordering::Relaxed), first.take_heard(9)), (0, None));
    for word in [&first.paused_ns, &first.turn_ns, &first.sent, &first.good] {
        assert_eq!(word.load(Ordering::Relaxed), 0);
    }
    let said: Vec<_> = set.iter().map(Service::take_said).collect();
    assert_eq!((said[0], said[1]), (None, Some((2, NEWS))));
}
