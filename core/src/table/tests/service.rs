//! Places of services: who gets which, and what goes with them.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::table::news::News;
use crate::table::service::{IDLE_NS, Moment, Service, ServiceKey, Writer};
use crate::table::set::{Set, find, hear, take};

const NOW: u64 = 1000 * IDLE_NS;
const NEWS: News = News { at_ns: NOW, answers: 1, until_ns: 0 };

fn key(name: u64) -> ServiceKey {
    ServiceKey::new(name, 7)
}

fn at(now: u64) -> impl Fn() -> Moment {
    let claims = AtomicU64::new(0);
    move || Moment::new(now, &claims)
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

/// Who asked for a pause has its place until it is over, however long nobody asks.
#[test]
fn a_pause_keeps_a_place() {
    let set = filled(8);
    let late = NOW + 3 * IDLE_NS;
    for service in &set[1..] {
        service.used(late);
    }
    set[0].paused_ns.store(late + 1, Ordering::Relaxed);
    assert!(!hear(&set, 100, at(late), NEWS), "it is nobody's to take");
    assert!(hear(&set, 100, at(late + 1), NEWS), "it is over");
    let set = filled(8);
    set[0].paused_ns.store(late + 1, Ordering::Relaxed);
    let (taken, _) = take(&set, key(9), at(late), worth);
    assert_eq!(index(&set, taken), 1, "the first that asked for none");
}

/// Times far ahead are another clock's.
#[test]
fn marks_from_the_future_keep_no_place() {
    let set = filled(8);
    for service in &set {
        service.used(1 << 62);
        service.paused_ns.store(1 << 62, Ordering::Relaxed);
    }
    assert!(hear(&set, 100, at(NOW), NEWS));
    for name in 10..18 {
        let (_, lost) = take(&set, key(name), at(NOW + name), worth);
        assert_eq!(lost, 0, "{name}");
    }
    assert!((10..18).all(|name| find(&set, key(name)).is_some()), "each has one");
    // A little ahead is who was faster.
    set[3].used(NOW + IDLE_NS);
    assert!(!set[3].is_unused(NOW) && set[3].is_unused(NOW - 1));
}

#[test]
fn claims_are_told_apart() {
    let table = super::empty(2);
    let tokens: HashSet<u32> = (0..100).map(|_| table.moment(NOW).token()).collect();
    assert!(tokens.len() == 100 && !tokens.contains(&0));
    for claims in [u64::from(u32::MAX) - 1, u64::from(u32::MAX), u64::MAX] {
        assert_ne!(Moment::new(NOW, &AtomicU64::new(claims)).token(), 0, "{claims}");
    }
}

/// What is written for a service whose place is another's by then is taken back, and nothing else.
#[test]
fn who_is_late_limits_nobody() {
    let set = filled(8);
    let (late, own) = (key(1), key(9));
    let write = |writer: &Writer<'_>, state, paused| {
        writer.change(|_| Some(state));
        writer.pause(|_| paused);
    };
    let words = || (set[0].state.load(Ordering::Relaxed), set[0].paused_ns.load(Ordering::Relaxed));
    set[0].step(late, |writer| write(writer, 5, 6));
    assert_eq!(words(), (5, 6), "it is not late");
    assert_eq!(index(&set, take(&set, own, at(NOW + 9), worth).0), 0);
    assert_eq!(words(), (0, 0));
    set[0].step(late, |writer| write(writer, 5, 6));
    assert_eq!(words(), (0, 0));
    // What it did not write stays, also what its owner writes meanwhile.
    set[0].step(late, |writer| {
        set[0].step(own, |writer| write(writer, 7, 9));
        assert!(!writer.change(|_| None));
        writer.pause(|before| before.max(8));
    });
    assert_eq!(words(), (7, 9));
    set[0].step(late, |writer| {
        write(writer, 5, 10);
        set[0].step(own, |writer| write(writer, 8, 11));
    });
    assert_eq!(words(), (8, 11));
}

/// Whoever took it may be dead.
#[test]
fn a_place_that_is_not_clean_is_cleaned_by_who_finds_it() {
    let set = filled(8);
    let dirty = |place: usize, name| {
        set[place].leave(key(name), 77);
        set[place].state.store(5, Ordering::Relaxed);
        set[place].say(name, NEWS);
        set[place].used(NOW + 20);
    };
    dirty(4, 9);
    assert!(find(&set, key(9)).is_none() && set[4].take_said().is_none());
    dirty(4, 9);
    let (found, lost) = take(&set, key(9), at(NOW + 20), worth);
    assert_eq!((index(&set, found), lost, found.state.load(Ordering::Relaxed)), (4, 0, 0));
    assert!(found.take_said().is_none() && found.key() == key(9));
    dirty(4, 9);
    assert!(hear(&set, 9, at(NOW), NEWS));
    assert_eq!(take(&set, key(9), at(NOW + 20), worth).0.take_heard(9), Some(NEWS));
    // Others leave it to whose it is, as one that was used just now.
    dirty(4, 9);
    let (first, lost) = take(&set, key(10), at(NOW + 30), worth);
    assert_eq!((index(&set, first), lost), (0, NOW + 1));
    assert_eq!((set[4].key(), worth(&set[4])), (key(9), NOW + 30));
    assert_eq!(set[4].state.load(Ordering::Relaxed), 0);
}

#[test]
fn news_of_nobody_are_not_told() {
    let set = Set::default();
    set[0].say(1 << 16, NEWS);
    assert_eq!(set[0].take_said(), None);
}

#[test]
fn what_moves_to_another_table_stays_whose_it_is() {
    let (old, new) = (filled(8), Set::default());
    let copy = |place: usize| {
        new[place].copy_from(&old[place]);
        new[place].key()
    };
    old[0].state.store(5, Ordering::Relaxed);
    assert_eq!((copy(0), new[0].state.load(Ordering::Relaxed)), (key(1), 5));
    old[1].leave(key(9), 77);
    old[1].state.store(5, Ordering::Relaxed);
    copy(1);
    assert!(find(&new, key(9)).is_none());
    assert_eq!(index(&new, take(&new, key(10), at(NOW), worth).0), 1, "free");
    assert_eq!(new[1].state.load(Ordering::Relaxed), 0);
}
