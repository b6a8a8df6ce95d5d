//! Several threads on few slots. `core/loom` tries every interleaving of fewer steps.

use std::sync::Barrier;
use std::thread;

use super::*;

const THREADS: u64 = if cfg!(miri) { 3 } else { 4 };
const ROUNDS: usize = if cfg!(miri) { 3 } else { 500 };

/// Runs the same in several threads at once, each of which has a number, and adds up the answers.
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

/// The first touch of a tag is where threads can get into each other's way most, so that every
/// round has a table of its own.
#[test]
fn what_passes_is_charged_and_within_the_burst() {
    for round in 0..ROUNDS {
        let rig = Rig::new(2, 10);
        let crowd = (round % 4) as u64;
        (0..crowd).for_each(|n| rig.charge(at_home(0, 2, 9 + n), SECOND, 1000).unwrap());
        let tag = at_home(0, 2, 0);
        let passed = at_once(|_| (0..20).map(|_| u64::from(rig.take(tag, SECOND))).sum::<u64>());
        assert_eq!(rig.used(tag, SECOND), passed as i64, "round {round}");
        assert_eq!(passed, 10, "round {round}");
        assert_eq!((rig.table.live(SECOND), rig.table.evicted.get()), (1 + crowd as usize, 0));
    }
}

/// A bucket that is there is one atomic step for all.
#[test]
fn of_a_known_tag_exactly_the_burst_passes() {
    let rig = Rig::new(2, if cfg!(miri) { 20 } else { 10_000 });
    let tags: Vec<u64> = (0..5).map(|n| at_home(0, 2, n)).collect();
    tags.iter().for_each(|tag| assert!(rig.take(*tag, SECOND)));
    let passed = at_once(|_| {
        let takes = (0..rig.scale.burst()).flat_map(|_| &tags);
        takes.map(|tag| u64::from(rig.take(*tag, SECOND))).sum()
    });
    assert_eq!(passed, 5 * (rig.scale.burst() - 1));
    assert!(tags.iter().all(|tag| rig.used(*tag, SECOND) == rig.scale.burst() as i64));
}

#[test]
fn no_charge_and_no_hit_is_lost() {
    for round in 0..ROUNDS {
        let rig = Rig::new(2, 10);
        rig.table.exchange(SECOND);
        let tags: Vec<u64> = (0..5).map(|n| at_home((n % 2) as usize, 2, n)).collect();
        let drained = at_once(|number| {
            for tag in &tags {
                rig.charge(*tag, SECOND, 1 + number).unwrap();
            }
            rig.drain(number == 0).iter().map(|(_, hits)| hits).sum()
        });
        let each = THREADS * (THREADS + 1) / 2;
        let used: Vec<i64> = tags.iter().map(|tag| rig.used(*tag, SECOND)).collect();
        assert_eq!(used, [each as i64; 5], "round {round}");
        let left: u64 = rig.drain(false).iter().map(|(_, hits)| hits).sum();
        assert_eq!(drained + left, 5 * each, "round {round}");
        assert_eq!(rig.drain(true), [], "all were marked");
    }
}

/// Slots go from tag to tag all the time; one tag is in debt and stays so.
#[test]
fn slots_change_hands_and_an_offender_keeps_his() {
    let rig = Rig::new(3, 2);
    let offender = at_home(0, 3, 0);
    rig.charge(offender, 0, 1_000_000).unwrap();
    let steps: u64 = if cfg!(miri) { 40 } else { 5000 };
    let passed = at_once(|number| {
        let mut numbers = Numbers(number);
        let mut passed = 0;
        for step in 0..steps {
            let n = 1 + numbers.next() % 60;
            rig.take(at_home(n as usize % 3, 3, n), step * SECOND);
            passed += u64::from(rig.take(offender, step * SECOND));
        }
        passed
    });
    assert_eq!((passed, rig.used(offender, 0)), (0, 1_000_000));
}
