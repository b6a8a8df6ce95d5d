//! Records of services: which record a service gets, and what happens to its content.

use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::busy::report::BusyReport;
use crate::busy::service::{ClaimStamp, IDLE_NS, Service, ServiceKey, Writer};
use crate::busy::set::{Set, add_remote_busy, find, take};
use crate::{BusyConfig, BusyThrottle, ManualClock};

const NOW: u64 = 1000 * IDLE_NS;
const REPORT: BusyReport = BusyReport { at_ns: NOW, answers: 1, until_ns: 0 };

fn key(name: u64) -> ServiceKey {
    ServiceKey::new(name, 7)
}

fn at(now: u64) -> impl Fn() -> ClaimStamp {
    let claims = AtomicU64::new(0);
    move || ClaimStamp::new(now, &claims)
}

fn value(service: &Service) -> u64 {
    service.used_ns.load(Ordering::Relaxed)
}

fn index(set: &Set, service: &Service) -> usize {
    set.iter().position(|other| std::ptr::eq(other, service)).unwrap()
}

/// Takes records for services 1, 2, 3 and so on, each at a later time.
fn filled(count: u64) -> Set {
    let set = Set::default();
    for name in 1..=count {
        let (_, lost) = take(&set, key(name), at(NOW + name), value);
        assert_eq!(lost, 0);
    }
    set
}

#[test]
fn a_new_service_takes_the_record_with_the_lowest_eviction_cost() {
    let set = filled(6);
    // Free records, then idle ones, then those that only peers reported, then those in use.
    assert!(add_remote_busy(&set, 100, at(NOW), REPORT) && find(&set, key(100)).is_none());
    let (free, _) = take(&set, key(7), at(NOW), value);
    assert_eq!(index(&set, free), 7);
    set[3].used_ns.store(NOW - 2 * IDLE_NS, Ordering::Relaxed);
    let (idle, lost) = take(&set, key(8), at(NOW + 8), value);
    assert_eq!((index(&set, idle), lost), (3, 0));
    let (remote, lost) = take(&set, key(9), at(NOW + 9), value);
    assert_eq!((index(&set, remote), lost, remote.take_remote_busy(9)), (6, 0, None));
    let (used, lost) = take(&set, key(10), at(NOW + 10), value);
    assert_eq!((index(&set, used), lost), (7, NOW), "the least recently used one");
}

#[test]
fn a_remote_report_waits_for_the_next_local_call() {
    let set = filled(8);
    assert!(
        !add_remote_busy(&set, 100, at(NOW), REPORT),
        "a remote report must not evict a local service"
    );
    let set = filled(4);
    assert!(
        add_remote_busy(&set, 100, at(NOW), REPORT)
            && add_remote_busy(&set, 100, at(NOW), REPORT)
            && add_remote_busy(&set, 2, at(NOW), REPORT)
    );
    let (own, lost) = take(&set, key(100), at(NOW), value);
    assert_eq!((own.take_remote_busy(100), lost), (Some(BusyReport { answers: 2, ..REPORT }), 0));
    assert_eq!(find(&set, key(2)).unwrap().take_remote_busy(2), Some(REPORT));
    // With other settings it has another record.
    let other = ServiceKey::new(100, 8);
    assert!(!std::ptr::eq(take(&set, other, at(NOW), value).0, own));
    assert!(add_remote_busy(&set, 100, at(NOW), REPORT));
    assert_eq!(
        (own.take_remote_busy(100), find(&set, other).unwrap().take_remote_busy(100)),
        (Some(REPORT), Some(REPORT))
    );
}

#[test]
fn a_reused_record_starts_empty() {
    let set = filled(8);
    for service in &set {
        service.state.store(1, Ordering::Relaxed);
        for word in [&service.paused_ns, &service.turn_ns, &service.sent, &service.good] {
            word.store(1, Ordering::Relaxed);
        }
        service.add_local_busy(service.key().name(), REPORT);
    }
    add_remote_busy(&set, 1, at(NOW), REPORT);
    let (first, lost) = take(&set, key(9), at(NOW + 9), value);
    assert_eq!((index(&set, first), lost), (0, NOW + 1));
    assert_eq!((first.state.load(Ordering::Relaxed), first.take_remote_busy(9)), (0, None));
    for word in [&first.paused_ns, &first.turn_ns, &first.sent, &first.good] {
        assert_eq!(word.load(Ordering::Relaxed), 0);
    }
    let local: Vec<_> = set.iter().map(Service::take_local_busy).collect();
    assert_eq!((local[0], local[1]), (None, Some((2, REPORT))));
}

/// The pause lasts longer than the time after which services are forgotten.
#[test]
fn a_service_keeps_its_record_until_its_pause_is_over() {
    let set = filled(8);
    let late = NOW + 3 * IDLE_NS;
    for service in &set[1..] {
        service.mark_used(late);
    }
    set[0].paused_ns.store(late + 1, Ordering::Relaxed);
    assert!(!add_remote_busy(&set, 100, at(late), REPORT), "the pause goes on");
    assert!(add_remote_busy(&set, 100, at(late + 1), REPORT), "the pause is over");
    let set = filled(8);
    set[0].paused_ns.store(late + 1, Ordering::Relaxed);
    let (taken, _) = take(&set, key(9), at(late), value);
    assert_eq!(index(&set, taken), 1, "the first service without a pause");
}

/// A timestamp far in the future was written with a different clock.
#[test]
fn timestamps_far_in_the_future_keep_no_record() {
    let set = filled(8);
    for service in &set {
        service.mark_used(1 << 62);
        service.paused_ns.store(1 << 62, Ordering::Relaxed);
    }
    assert!(add_remote_busy(&set, 100, at(NOW), REPORT));
    for name in 10..18 {
        let (_, lost) = take(&set, key(name), at(NOW + name), value);
        assert_eq!(lost, 0, "{name}");
    }
    assert!((10..18).all(|name| find(&set, key(name)).is_some()), "each service has a record");
    // Slightly in the future: another process read the clock just after this one.
    set[3].mark_used(NOW + IDLE_NS);
    assert!(!set[3].is_unused(NOW) && set[3].is_unused(NOW - 1));
}

#[test]
fn every_claim_has_a_token_of_its_own() {
    let busy = BusyThrottle::with_clock(BusyConfig::new(), ManualClock::new()).unwrap();
    let tokens: HashSet<u32> = (0..100).map(|_| busy.0.store.stamp(NOW).token()).collect();
    assert!(tokens.len() == 100 && !tokens.contains(&0));
    for claims in [u64::from(u32::MAX) - 1, u64::from(u32::MAX), u64::MAX] {
        assert_ne!(ClaimStamp::new(NOW, &AtomicU64::new(claims)).token(), 0, "{claims}");
    }
}

#[test]
fn a_write_to_a_reassigned_record_is_undone_without_other_changes() {
    let set = filled(8);
    let (late, own) = (key(1), key(9));
    let write = |writer: &Writer<'_>, state, paused| {
        writer.change(|_| Some(state));
        writer.pause(|_| paused);
    };
    let words = || (set[0].state.load(Ordering::Relaxed), set[0].paused_ns.load(Ordering::Relaxed));
    set[0].step(late, |writer| write(writer, 5, 6));
    assert_eq!(words(), (5, 6), "the write is not late");
    assert_eq!(index(&set, take(&set, own, at(NOW + 9), value).0), 0);
    assert_eq!(words(), (0, 0));
    set[0].step(late, |writer| write(writer, 5, 6));
    assert_eq!(words(), (0, 0));
    // Words that were not written stay. So do the values that the owner writes meanwhile.
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

/// The process that took the record may be dead.
#[test]
fn any_call_cleans_a_record_that_is_not_clean() {
    let set = filled(8);
    let dirty = |record: usize, name| {
        set[record].abandon(key(name), 77);
        set[record].state.store(5, Ordering::Relaxed);
        set[record].add_local_busy(name, REPORT);
        set[record].mark_used(NOW + 20);
    };
    dirty(4, 9);
    assert!(find(&set, key(9)).is_none() && set[4].take_local_busy().is_none());
    dirty(4, 9);
    let (found, lost) = take(&set, key(9), at(NOW + 20), value);
    assert_eq!((index(&set, found), lost, found.state.load(Ordering::Relaxed)), (4, 0, 0));
    assert!(found.take_local_busy().is_none() && found.key() == key(9));
    dirty(4, 9);
    assert!(add_remote_busy(&set, 9, at(NOW), REPORT));
    assert_eq!(take(&set, key(9), at(NOW + 20), value).0.take_remote_busy(9), Some(REPORT));
    // A claim for another service does not evict it: it counts as just used.
    dirty(4, 9);
    let (first, lost) = take(&set, key(10), at(NOW + 30), value);
    assert_eq!((index(&set, first), lost), (0, NOW + 1));
    assert_eq!((set[4].key(), value(&set[4])), (key(9), NOW + 30));
    assert_eq!(set[4].state.load(Ordering::Relaxed), 0);
}

#[test]
fn a_report_in_a_free_record_is_dropped() {
    let set = Set::default();
    set[0].add_local_busy(1 << 16, REPORT);
    assert_eq!(set[0].take_local_busy(), None);
}

/// Several threads cut services that have no record yet, two of them the same one, in a set full of
/// other services. `core/loom` tries every interleaving of fewer steps.
#[test]
fn a_cut_that_was_made_stays() {
    const THREADS: u64 = if cfg!(miri) { 3 } else { 4 };
    let (mut lost, rounds) = (0, if cfg!(miri) { 2 } else { 2000 });
    for round in 0..rounds {
        let (set, claims) = (Set::default(), AtomicU64::new(round));
        let take_at = |name, now| take(&set, key(name), || ClaimStamp::new(now, &claims), value).0;
        (1..9).for_each(|n| take_at(100 + n, n).state.store(100, Ordering::Relaxed));
        let barrier = Barrier::new(THREADS as usize);
        let cut = &|name: u64| {
            barrier.wait();
            take_at(name, 9).step(key(name), |writer| {
                writer.change(|bits| (bits == 0).then_some(u128::from(name)))
            });
        };
        thread::scope(|scope| {
            (0..THREADS).for_each(|number| _ = scope.spawn(move || cut(1 + number / 2)));
        });
        for name in 1..=THREADS / 2 {
            let found = find(&set, key(name));
            lost +=
                u64::from(found.is_none_or(|it| it.state.load(Ordering::Relaxed) != name.into()));
        }
    }
    assert_eq!(lost, 0);
}
