//! Several threads on few slots. `core/loom` tries every interleaving of fewer steps.

use std::sync::Barrier;
use std::thread;

use super::*;

const THREADS: u64 = if cfg!(miri) { 3 } else { 4 };
const ROUNDS: usize = if cfg!(miri) { 3 } else { 500 };

/// Runs `act` in several numbered threads at once, and returns the sum of the results.
fn at_once(act: impl Fn(u64) -> u64 + Sync) -> u64 {
    let barrier = Barrier::new(THREADS as usize);
    let (act, barrier) = (&act, &barrier);
    thread::scope(|scope| {
        let start = |number| {
            scope.spawn(move || {
                barrier.wait();
                act(number)
            })
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

/// Races are most likely at the first check of a tag, so every round has a new table.
#[test]
fn concurrent_first_checks_of_a_tag_admit_exactly_the_burst() {
    for round in 0..ROUNDS {
        let test = TestTable::new(2, 10);
        let crowd = (round % 4) as u64;
        (0..crowd).for_each(|n| test.charge(at_home(0, 2, 9 + n), SECOND, 1000).unwrap());
        let tag = at_home(0, 2, 0);
        let passed = at_once(|_| (0..20).map(|_| u64::from(test.take(tag, SECOND))).sum::<u64>());
        assert_eq!(test.used(tag, SECOND), passed as i64, "round {round}");
        assert_eq!(passed, 10, "round {round}");
        assert_eq!((test.table.live(SECOND), test.table.evicted.get()), (1 + crowd as usize, 0));
    }
}

/// A check of an existing bucket is a single atomic step.
#[test]
fn concurrent_checks_of_known_tags_admit_exactly_the_burst() {
    let test = TestTable::new(2, if cfg!(miri) { 20 } else { 10_000 });
    let tags: Vec<u64> = (0..5).map(|n| at_home(0, 2, n)).collect();
    tags.iter().for_each(|tag| assert!(test.take(*tag, SECOND)));
    let passed = at_once(|_| {
        let takes = (0..test.scale.burst()).flat_map(|_| &tags);
        takes.map(|tag| u64::from(test.take(*tag, SECOND))).sum()
    });
    assert_eq!(passed, 5 * (test.scale.burst() - 1));
    assert!(tags.iter().all(|tag| test.used(*tag, SECOND) == test.scale.burst() as i64));
}

#[test]
fn concurrent_charges_lose_no_unit_and_no_hit() {
    for round in 0..ROUNDS {
        let test = TestTable::new(2, 10);
        test.table.set_exchanged(SECOND);
        let tags: Vec<u64> = (0..5).map(|n| at_home((n % 2) as usize, 2, n)).collect();
        let drained = at_once(|number| {
            for tag in &tags {
                test.charge(*tag, SECOND, 1 + number).unwrap();
            }
            test.drain(number == 0).iter().map(|(_, hits)| hits).sum()
        });
        let each = THREADS * (THREADS + 1) / 2;
        let used: Vec<i64> = tags.iter().map(|tag| test.used(*tag, SECOND)).collect();
        assert_eq!(used, [each as i64; 5], "round {round}");
        let left: u64 = test.drain(false).iter().map(|(_, hits)| hits).sum();
        assert_eq!(drained + left, 5 * each, "round {round}");
        assert_eq!(test.drain(true), [], "every line with hits was marked");
    }
}

/// Slots are replaced all the time, while one tag is deep in debt.
#[test]
fn a_tag_in_debt_keeps_its_slot_while_other_slots_are_reused() {
    let test = TestTable::new(3, 2);
    let debtor = at_home(0, 3, 0);
    test.charge(debtor, 0, 1_000_000).unwrap();
    let steps: u64 = if cfg!(miri) { 40 } else { 5000 };
    let passed = at_once(|number| {
        let mut numbers = Numbers(number);
        let mut passed = 0;
        for step in 0..steps {
            let n = 1 + numbers.next() % 60;
            test.take(at_home(n as usize % 3, 3, n), step * SECOND);
            passed += u64::from(test.take(debtor, step * SECOND));
        }
        passed
    });
    assert_eq!((passed, test.used(debtor, 0)), (0, 1_000_000));
}
