//! Records that are given from service to service while other threads read them, add reports, or
//! are killed.
//!
//! `add_local_busy` and `take_local_busy` are copies of those of core's `Store` and must be changed
//! together with them.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::Ordering;

use loom::model::Builder;
use loom::sync::Arc;

use super::cell::AtomicU64;
use super::report::BusyReport;
use super::service::{ClaimStamp, IDLE_NS, Service, ServiceKey, Writer};
use super::set::{Set, add_remote_busy, find, take};
use crate::table::monitor;
use crate::table::mutation::Mutation;

const NOW: u64 = 2 * IDLE_NS;
const A: u64 = 1;
const B: u64 = 2;
const C: u64 = 3;
const D: u64 = 4;

/// A report that identifies its service: it has as many responses as the name says.
const fn report(name: u64) -> BusyReport {
    BusyReport { at_ns: 5_000_000, answers: name, until_ns: 0 }
}

fn key(name: u64) -> ServiceKey {
    ServiceKey::new(name, 1)
}

#[derive(Default)]
struct Model {
    set: Set,
    has_local_busy: AtomicU64,
    claims: AtomicU64,
    /// How often reports of each service were taken, and how often it was cut. Plain atomics,
    /// because they are not part of the model.
    taken: [std::sync::atomic::AtomicU64; 6],
    cuts: [std::sync::atomic::AtomicU64; 6],
}

type Action = fn(&Model);

impl Model {
    /// Returns the record of a service that is called now.
    fn take(&self, name: u64) -> &Service {
        let value = |service: &Service| service.used_ns.load(Ordering::Relaxed);
        take(&self.set, key(name), || self.stamp(), value).0
    }

    fn stamp(&self) -> ClaimStamp {
        if Mutation::OneToken.is_active() {
            return ClaimStamp::new(NOW, &AtomicU64::new(0));
        }
        ClaimStamp::new(NOW, &self.claims)
    }

    fn cut(&self, name: u64) {
        self.cut_at(self.take(name), name);
    }

    /// Writes the service's name as its state. As in core, a cut is not repeated.
    fn cut_at(&self, record: &Service, name: u64) {
        let write = |writer: &Writer<'_>| {
            let cut = writer.change(|bits| (bits == 0).then_some(u128::from(name)));
            self.cuts[name as usize].fetch_add(cut.into(), Ordering::Relaxed);
        };
        match Mutation::NoSecondSearch.is_active() {
            true => write(&Writer::new(record)),
            false => record.step(key(name), write),
        }
    }

    /// Asserts that a service that was cut and still has its record also has its limit.
    fn assert_cut_kept(&self, name: u64) {
        let cuts = self.cuts[name as usize].load(Ordering::Relaxed);
        if let Some(record) = find(&self.set, key(name)) {
            let state = record.state.load(Ordering::Relaxed);
            assert_eq!((cuts, state), (1, name.into()), "a cut of {name} is lost");
        }
    }

    fn add_local_busy(&self, name: u64) {
        let record = self.take(name);
        if Mutation::FlagFirst.is_active() {
            self.has_local_busy.swap(1, Ordering::Release);
        }
        record.add_local_busy(name, report(name));
        if !Mutation::FlagFirst.is_active() {
            self.has_local_busy.swap(1, Ordering::Release);
        }
    }

    fn take_local_busy(&self) {
        if self.has_local_busy.load(Ordering::Relaxed) == 0 {
            return;
        }
        if !Mutation::ReadFirst.is_active() {
            self.has_local_busy.swap(0, Ordering::Acquire);
        }
        for (name, report) in self.set.iter().filter_map(Service::take_local_busy) {
            assert_eq!(report.answers, name, "report of another service");
            self.taken[name as usize].fetch_add(1, Ordering::Relaxed);
        }
        if Mutation::ReadFirst.is_active() {
            self.has_local_busy.swap(0, Ordering::Acquire);
        }
    }

    fn taken(&self, name: u64) -> u64 {
        self.taken[name as usize].load(Ordering::Relaxed)
    }

    /// Asserts that the record of a service contains no state of another service.
    fn assert_no_foreign_state(&self, name: u64) {
        if let Some(record) = find(&self.set, key(name)) {
            let state = record.state.load(Ordering::Relaxed);
            assert!([0, name.into()].contains(&state), "state of another service: {state}");
        }
    }

    fn records(&self, name: u64) -> usize {
        self.set.iter().filter(|service| service.key() == key(name)).count()
    }
}

/// Runs all interleavings of threads, each with one action, and calls `check` at the end of each.
fn explore(mutation: Mutation, prepare: Action, actions: &'static [Action], check: Action) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(3));
    builder.check(move || {
        Mutation::None.activate();
        monitor::reset();
        let model = Arc::new(Model::default());
        prepare(&model);
        mutation.activate();
        let threads = actions.iter().map(|action| {
            let model = model.clone();
            loom::thread::spawn(move || action(&model))
        });
        for thread in threads.collect::<Vec<_>>() {
            thread.join().unwrap();
        }
        Mutation::None.activate();
        check(&model);
    });
}

/// Runs `action`, but stops the thread instead of making one more change after this number.
fn run_or_die(changes: usize, action: impl FnOnce()) {
    monitor::kill_after(changes);
    if let Err(cause) = panic::catch_unwind(AssertUnwindSafe(action))
        && !cause.is::<monitor::Killed>()
    {
        panic::resume_unwind(cause);
    }
}

/// Prepares two records: the first belongs to A, which has long been idle; the second to C, which
/// was called a moment ago.
fn used(model: &Model) {
    model.add_local_busy(A);
    model.cut(A);
    model.cut(C);
    model.set[0].used_ns.store(0, Ordering::Relaxed);
    model.set[1].used_ns.store(NOW - 1, Ordering::Relaxed);
}

/// Like `used`, but the first record has the lowest eviction cost even while it is being claimed.
fn used_by_others(model: &Model) {
    used(model);
    model.set[1].used_ns.store(NOW + 1, Ordering::Relaxed);
}

#[test]
fn two_threads_that_take_one_service_get_the_same_record() {
    let check: Action = |model| {
        assert_eq!(model.records(A), 1);
        assert_eq!(model.take(A).state.load(Ordering::Relaxed), A.into());
    };
    explore(Mutation::None, |_| {}, &[|model| model.cut(A), |model| _ = model.take(A)], check);
}

fn two_services_take_one_record(mutation: Mutation) {
    let actions: &[Action] = &[|model| model.cut(A), |model| model.cut(B)];
    explore(
        mutation,
        |_| {},
        actions,
        |model| {
            assert_eq!((model.records(A), model.records(B)), (1, 1), "records of both");
            model.assert_no_foreign_state(A);
            model.assert_no_foreign_state(B);
        },
    );
}

#[test]
fn two_services_that_race_for_one_record_both_get_a_record() {
    two_services_take_one_record(Mutation::None);
}

#[test]
#[should_panic(expected = "records of both")]
fn the_model_notices_a_record_taken_without_comparing() {
    two_services_take_one_record(Mutation::NoCompare);
}

fn record_changes_owner(mutation: Mutation) {
    let actions: &[Action] = &[|model| model.cut(B), |model| model.assert_no_foreign_state(B)];
    explore(mutation, used, actions, |model| {
        assert_eq!((model.records(A), model.records(B), model.records(C)), (0, 1, 1));
    });
}

#[test]
fn a_found_record_contains_nothing_of_another_service() {
    record_changes_owner(Mutation::None);
}

#[test]
#[should_panic(expected = "state of another service")]
fn the_model_notices_a_record_found_without_order() {
    record_changes_owner(Mutation::NoOrder);
}

fn report_is_taken(mutation: Mutation) {
    let actions: &[Action] = &[|model| model.add_local_busy(B), |model| model.take_local_busy()];
    explore(mutation, used, actions, |model| {
        model.take_local_busy();
        assert_eq!(model.taken(B), 1, "reports of B");
        assert!(model.taken(A) <= 1);
    });
}

#[test]
fn a_report_is_taken_once_and_for_its_service() {
    report_is_taken(Mutation::None);
}

#[test]
#[should_panic(expected = "reports of B")]
fn the_model_notices_a_flag_set_before_the_report() {
    report_is_taken(Mutation::FlagFirst);
}

#[test]
#[should_panic(expected = "reports of B")]
fn the_model_notices_a_flag_cleared_after_the_search() {
    report_is_taken(Mutation::ReadFirst);
}

/// One thread claims a record, while another claims it for another service, gets a busy response,
/// and dies after it has claimed it again for the first.
fn record_changes_owner_twice(mutation: Mutation) {
    let actions: &[Action] = &[
        |model| _ = model.take(B),
        |model| {
            model.cut(D);
            run_or_die(1, || _ = model.take(B));
        },
    ];
    explore(mutation, used_by_others, actions, |model| model.assert_no_foreign_state(B));
}

#[test]
fn a_record_taken_twice_contains_nothing_of_another_service() {
    record_changes_owner_twice(Mutation::None);
}

#[test]
#[should_panic(expected = "state of another service")]
fn the_model_notices_claims_with_equal_tokens() {
    record_changes_owner_twice(Mutation::OneToken);
}

/// Two threads get busy responses. Both claim A's record, for different services or for the same
/// one.
fn both_are_cut(actions: &'static [Action]) {
    explore(Mutation::None, used, actions, |model| {
        model.assert_cut_kept(B);
        model.assert_cut_kept(D);
    });
}

#[test]
fn a_claim_wipes_no_cut_of_another_claim() {
    both_are_cut(&[|model| model.cut(B), |model| model.cut(D)]);
}

#[test]
fn a_claim_wipes_no_cut_of_the_same_service() {
    both_are_cut(&[|model| model.cut(B), |model| model.cut(B)]);
}

/// A second thread claims a record that the first has not cleaned yet, because C was called later.
#[test]
fn a_service_that_loses_its_record_wipes_no_cut_of_the_next_owner() {
    let actions: &[Action] = &[|model| _ = model.take(B), |model| model.cut(D)];
    explore(Mutation::None, used_by_others, actions, |model| model.assert_cut_kept(D));
}

/// Two threads get busy responses of a service that was idle.
#[test]
fn a_reset_of_an_idle_record_wipes_no_cut_of_another_reset() {
    fn cut_after_idle(model: &Model) {
        let record = model.take(A);
        record.touch(NOW, || record.is_unused(NOW));
        model.cut_at(record, A);
    }
    let prepare: Action = |model| {
        model.take(A).state.swap(7, Ordering::Relaxed);
        model.set[0].used_ns.store(0, Ordering::Relaxed);
    };
    explore(Mutation::None, prepare, &[cut_after_idle, cut_after_idle], |model| {
        model.assert_cut_kept(A);
    });
}

/// The thread that gets a busy response found the record long ago.
fn cut_comes_late(mutation: Mutation) {
    let actions: &[Action] = &[|model| model.cut_at(&model.set[0], A), |model| model.cut(B)];
    let prepare: Action = |model| {
        used(model);
        model.set[0].state.swap(0, Ordering::Relaxed);
    };
    explore(mutation, prepare, actions, |model| {
        model.assert_no_foreign_state(B);
        // B may see A's state for a moment and is not cut then, but a cut that was made must stay.
        if model.cuts[B as usize].load(Ordering::Relaxed) > 0 {
            model.assert_cut_kept(B);
        }
    });
}

#[test]
fn a_late_cut_does_not_limit_the_new_owner() {
    cut_comes_late(Mutation::None);
}

#[test]
#[should_panic(expected = "state of another service")]
fn the_model_notices_a_late_cut_without_a_second_check() {
    cut_comes_late(Mutation::NoSecondSearch);
}

#[test]
#[should_panic(expected = "state of another service")]
fn the_model_notices_a_second_check_without_a_fence() {
    cut_comes_late(Mutation::NoFence);
}

/// The thread that adds a report found the record long ago.
#[test]
fn a_late_report_is_dropped() {
    let actions: &[Action] = &[
        |model| {
            model.set[0].add_local_busy(A, report(A));
            model.has_local_busy.swap(1, Ordering::Release);
        },
        |model| _ = model.take(B),
    ];
    explore(Mutation::None, used, actions, Model::take_local_busy);
}

#[test]
fn a_remote_report_of_a_new_service_is_kept_for_it() {
    let actions: &[Action] = &[
        |model| assert!(add_remote_busy(&model.set, A, || model.stamp(), report(A))),
        |model| _ = model.take(A),
    ];
    explore(
        Mutation::None,
        |_| {},
        actions,
        |model| {
            assert_eq!(model.take(A).take_remote_busy(A), Some(report(A)));
            assert_eq!(model.records(A), 1);
        },
    );
}

/// A thread that claims the record of another service dies before each of its changes in turn. The
/// next thread gets a clean record.
#[test]
fn a_thread_that_dies_leaves_a_usable_record() {
    fn die(model: &Model) {
        // More than the number of changes.
        for swaps in 0..12 {
            run_or_die(swaps, || model.add_local_busy(B));
            monitor::reset();
            model.assert_no_foreign_state(A);
            model.assert_no_foreign_state(B);
            model.take_local_busy();
        }
    }
    explore(
        Mutation::None,
        used_by_others,
        &[die, |model| model.assert_no_foreign_state(B)],
        |model| {
            assert_eq!((model.records(B), model.records(C)), (1, 1));
            assert!(model.taken(B) > 0);
        },
    );
}
