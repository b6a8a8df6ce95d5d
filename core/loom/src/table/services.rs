//! Places that go from service to service while others look, speak, hear or die.
//!
//! `say` and `take_said` mirror those of core's `Table`. A change there is a change here.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::Ordering;

use loom::model::Builder;
use loom::sync::Arc;

use super::cell::AtomicU64;
use super::mistake::Mistake;
use super::news::News;
use super::service::{IDLE_NS, Moment, Service, ServiceKey, Writer};
use super::set::{Set, find, hear, take};
use super::witness;

const NOW: u64 = 2 * IDLE_NS;
const A: u64 = 1;
const B: u64 = 2;
const C: u64 = 3;
const D: u64 = 4;

/// News that show whose they are: each service has as many answers as its name says.
const fn news(name: u64) -> News {
    News { at_ns: 5_000_000, answers: name, until_ns: 0 }
}

fn key(name: u64) -> ServiceKey {
    ServiceKey::new(name, 1)
}

#[derive(Default)]
struct Model {
    set: Set,
    said: AtomicU64,
    claims: AtomicU64,
    /// How often busy answers of each service were taken, and how often it was cut. Not loom's: they
    /// take no part.
    told: [std::sync::atomic::AtomicU64; 6],
    cuts: [std::sync::atomic::AtomicU64; 6],
}

type Act = fn(&Model);

impl Model {
    /// The place of a service that is asked about now.
    fn take(&self, name: u64) -> &Service {
        let worth = |service: &Service| service.used_ns.load(Ordering::Relaxed);
        take(&self.set, key(name), || self.moment(), worth).0
    }

    fn moment(&self) -> Moment {
        if Mistake::OneToken.is_made() {
            return Moment::new(NOW, &AtomicU64::new(0));
        }
        Moment::new(NOW, &self.claims)
    }

    fn cut(&self, name: u64) {
        self.cut_at(self.take(name), name);
    }

    /// What limits a service stands for its name, too. As in core, a cut that is there stays.
    fn cut_at(&self, place: &Service, name: u64) {
        let write = |writer: &Writer<'_>| {
            let cut = writer.change(|bits| (bits == 0).then_some(u128::from(name)));
            self.cuts[name as usize].fetch_add(cut.into(), Ordering::Relaxed);
        };
        match Mistake::NoSecondLook.is_made() {
            true => write(&Writer::new(place)),
            false => place.step(key(name), write),
        }
    }

    /// A service that was cut, and still has its place, has its limit.
    fn keeps(&self, name: u64) {
        let cuts = self.cuts[name as usize].load(Ordering::Relaxed);
        if let Some(place) = find(&self.set, key(name)) {
            let state = place.state.load(Ordering::Relaxed);
            assert_eq!((cuts, state), (1, name.into()), "a cut of {name} is lost");
        }
    }

    fn say(&self, name: u64) {
        let place = self.take(name);
        if Mistake::FlagFirst.is_made() {
            self.said.swap(1, Ordering::Release);
        }
        place.say(name, news(name));
        if !Mistake::FlagFirst.is_made() {
            self.said.swap(1, Ordering::Release);
        }
    }

    fn take_said(&self) {
        if self.said.load(Ordering::Relaxed) == 0 {
            return;
        }
        if !Mistake::LookFirst.is_made() {
            self.said.swap(0, Ordering::Acquire);
        }
        for (name, said) in self.set.iter().filter_map(Service::take_said) {
            assert_eq!(said.answers, name, "news of another");
            self.told[name as usize].fetch_add(1, Ordering::Relaxed);
        }
        if Mistake::LookFirst.is_made() {
            self.said.swap(0, Ordering::Acquire);
        }
    }

    fn told(&self, name: u64) -> u64 {
        self.told[name as usize].load(Ordering::Relaxed)
    }

    /// What a service finds that looks for its place has nothing of another's.
    fn look(&self, name: u64) {
        if let Some(place) = find(&self.set, key(name)) {
            let state = place.state.load(Ordering::Relaxed);
            assert!([0, name.into()].contains(&state), "numbers of another: {state}");
        }
    }

    fn places(&self, name: u64) -> usize {
        self.set.iter().filter(|service| service.key() == key(name)).count()
    }
}

/// All interleavings of threads, each of which does one act, and what must be so at the end.
fn explore(mistake: Mistake, prepare: Act, acts: &'static [Act], check: Act) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(3));
    builder.check(move || {
        Mistake::None.make();
        witness::reset();
        let model = Arc::new(Model::default());
        prepare(&model);
        mistake.make();
        let threads = acts.iter().map(|act| {
            let model = model.clone();
            loom::thread::spawn(move || act(&model))
        });
        for thread in threads.collect::<Vec<_>>() {
            thread.join().unwrap();
        }
        Mistake::None.make();
        check(&model);
    });
}

/// Does something, but the thread dies instead of one more change after so many.
fn or_die(changes: usize, act: impl FnOnce()) {
    witness::dies_after(changes);
    if let Err(cause) = panic::catch_unwind(AssertUnwindSafe(act))
        && !cause.is::<witness::Dead>()
    {
        panic::resume_unwind(cause);
    }
}

/// The first place is A's, which nobody has asked about for long; the second is C's, who asked a
/// moment ago.
fn used(model: &Model) {
    model.say(A);
    model.cut(A);
    model.cut(C);
    model.set[0].used_ns.store(0, Ordering::Relaxed);
    model.set[1].used_ns.store(NOW - 1, Ordering::Relaxed);
}

/// The same, but nobody's place is worth less than the first.
fn used_by_others(model: &Model) {
    used(model);
    model.set[1].used_ns.store(NOW + 1, Ordering::Relaxed);
}

#[test]
fn two_who_take_the_same_get_the_same() {
    let check: Act = |model| {
        assert_eq!(model.places(A), 1);
        assert_eq!(model.take(A).state.load(Ordering::Relaxed), A.into());
    };
    explore(Mistake::None, |_| {}, &[|model| model.cut(A), |model| _ = model.take(A)], check);
}

fn want_one_place(mistake: Mistake) {
    let acts: &[Act] = &[|model| model.cut(A), |model| model.cut(B)];
    explore(
        mistake,
        |_| {},
        acts,
        |model| {
            assert_eq!((model.places(A), model.places(B)), (1, 1), "places of both");
            model.look(A);
            model.look(B);
        },
    );
}

#[test]
fn two_who_want_the_same_place_both_get_one() {
    want_one_place(Mistake::None);
}

#[test]
#[should_panic(expected = "places of both")]
fn a_place_taken_without_comparing_is_noticed() {
    want_one_place(Mistake::NoCompare);
}

fn changes_hands(mistake: Mistake) {
    let acts: &[Act] = &[|model| model.cut(B), |model| model.look(B)];
    explore(mistake, used, acts, |model| {
        assert_eq!((model.places(A), model.places(B), model.places(C)), (0, 1, 1));
    });
}

#[test]
fn who_finds_its_place_finds_nothing_of_another() {
    changes_hands(Mistake::None);
}

#[test]
#[should_panic(expected = "numbers of another")]
fn a_place_found_without_order_is_noticed() {
    changes_hands(Mistake::NoOrder);
}

fn is_told(mistake: Mistake) {
    let acts: &[Act] = &[|model| model.say(B), |model| model.take_said()];
    explore(mistake, used, acts, |model| {
        model.take_said();
        assert_eq!(model.told(B), 1, "news of B");
        assert!(model.told(A) <= 1);
    });
}

#[test]
fn news_are_told_once_and_of_whom_they_are() {
    is_told(Mistake::None);
}

#[test]
#[should_panic(expected = "news of B")]
fn news_noted_before_they_are_there_are_noticed() {
    is_told(Mistake::FlagFirst);
}

#[test]
#[should_panic(expected = "news of B")]
fn news_looked_for_before_the_note_is_taken_are_noticed() {
    is_told(Mistake::LookFirst);
}

/// One takes the place while another takes it from it, is told busy, and dies when it has taken it
/// back.
fn change_hands_twice(mistake: Mistake) {
    let acts: &[Act] = &[
        |model| _ = model.take(B),
        |model| {
            model.cut(D);
            or_die(1, || _ = model.take(B));
        },
    ];
    explore(mistake, used_by_others, acts, |model| model.look(B));
}

#[test]
fn a_place_that_goes_to_and_fro_has_nothing_of_another() {
    change_hands_twice(Mistake::None);
}

#[test]
#[should_panic(expected = "numbers of another")]
fn places_taken_by_one_token_are_noticed() {
    change_hands_twice(Mistake::OneToken);
}

/// Two are told busy, who both want A's place, or the same.
fn are_cut(acts: &'static [Act]) {
    explore(Mistake::None, used, acts, |model| {
        model.keeps(B);
        model.keeps(D);
    });
}

#[test]
fn who_takes_a_place_wipes_no_cut_of_another() {
    are_cut(&[|model| model.cut(B), |model| model.cut(D)]);
}

#[test]
fn who_takes_a_place_wipes_no_cut_of_who_takes_the_same() {
    are_cut(&[|model| model.cut(B), |model| model.cut(B)]);
}

/// The next who comes takes the place from whoever has not cleaned it yet: C asked later.
#[test]
fn who_is_robbed_wipes_no_cut_of_who_did() {
    let acts: &[Act] = &[|model| _ = model.take(B), |model| model.cut(D)];
    explore(Mistake::None, used_by_others, acts, |model| model.keeps(D));
}

/// Two are told busy by a service that nobody asked about for long.
#[test]
fn who_comes_back_wipes_no_cut_of_who_does_so_too() {
    fn come_back(model: &Model) {
        let place = model.take(A);
        place.touch(NOW, || place.is_unused(NOW));
        model.cut_at(place, A);
    }
    let prepare: Act = |model| {
        model.take(A).state.swap(7, Ordering::Relaxed);
        model.set[0].used_ns.store(0, Ordering::Relaxed);
    };
    explore(Mistake::None, prepare, &[come_back, come_back], |model| model.keeps(A));
}

/// Another table takes over what a place has while it goes to another.
#[test]
fn what_moves_to_another_table_is_of_whom_it_says() {
    fn copy(model: &Model) {
        let new = Service::default();
        new.copy_from(&model.set[0]);
        let (key, state) = (new.key(), new.state.load(Ordering::Relaxed));
        assert!([0, key.name().into()].contains(&state), "{key:?}: {state}");
    }
    explore(Mistake::None, used, &[|model| model.cut(B), copy], |model| model.keeps(B));
}

/// Who is told busy has found its place long ago.
fn comes_late(mistake: Mistake) {
    let acts: &[Act] = &[|model| model.cut_at(&model.set[0], A), |model| model.cut(B)];
    let prepare: Act = |model| {
        used(model);
        model.set[0].state.swap(0, Ordering::Relaxed);
    };
    explore(mistake, prepare, acts, |model| {
        model.look(B);
        // It finds the other's for a moment, and is not cut then; but a cut that was made stays.
        if model.cuts[B as usize].load(Ordering::Relaxed) > 0 {
            model.keeps(B);
        }
    });
}

#[test]
fn what_comes_late_limits_nobody() {
    comes_late(Mistake::None);
}

#[test]
#[should_panic(expected = "numbers of another")]
fn what_comes_late_without_a_second_look_is_noticed() {
    comes_late(Mistake::NoSecondLook);
}

#[test]
#[should_panic(expected = "numbers of another")]
fn a_second_look_without_a_fence_is_noticed() {
    comes_late(Mistake::NoFence);
}

/// Who speaks has found its place long ago.
#[test]
fn news_that_come_late_are_nobodys() {
    let acts: &[Act] = &[
        |model| {
            model.set[0].say(A, news(A));
            model.said.swap(1, Ordering::Release);
        },
        |model| _ = model.take(B),
    ];
    explore(Mistake::None, used, acts, Model::take_said);
}

#[test]
fn what_is_heard_of_a_new_service_is_kept_for_it() {
    let acts: &[Act] = &[
        |model| assert!(hear(&model.set, A, || model.moment(), news(A))),
        |model| _ = model.take(A),
    ];
    explore(
        Mistake::None,
        |_| {},
        acts,
        |model| {
            assert_eq!(model.take(A).take_heard(A), Some(news(A)));
            assert_eq!(model.places(A), 1);
        },
    );
}

/// Whoever takes the place of another dies before any of its changes; the next who comes gets a
/// clean one.
#[test]
fn who_dies_on_the_way_leaves_a_place_that_works() {
    fn die(model: &Model) {
        // More changes than there are.
        for swaps in 0..12 {
            or_die(swaps, || model.say(B));
            witness::reset();
            model.look(A);
            model.look(B);
            model.take_said();
        }
    }
    explore(Mistake::None, used_by_others, &[die, |model| model.look(B)], |model| {
        assert_eq!((model.places(B), model.places(C)), (1, 1));
        assert!(model.told(B) > 0);
    });
}
