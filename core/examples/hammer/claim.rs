//! Two processes that claim a slot for the same new tag at the same moment, in a table so small
//! that slots are replaced all the time.

use std::sync::atomic::{AtomicU64, Ordering};

use dthrottle::{Rule, Throttle};

use super::TaskResult;
use super::options::{Options, slow};
use super::process::{Random, fork, join, shared, yield_now};

const BURST: u64 = 4;
/// Checks per process and round. Together they exceed the burst.
const TRIES: u64 = 3;

/// Counters that both processes share.
struct Count {
    arrived: &'static AtomicU64,
    admitted: &'static AtomicU64,
    wrong: &'static AtomicU64,
    max_admitted: &'static AtomicU64,
}

/// Prints the number of rounds in which the bucket was not charged exactly what was admitted, and
/// the most that was admitted in one round.
pub(crate) fn run(options: &Options) -> TaskResult {
    let rounds = options.number("rounds")?;
    let flood = Rule::per_second(100_000).burst(1_000_000);
    let builder = options.builder()?.rule(slow(BURST)).domain("flood", [flood]);
    let throttle = builder.build()?;
    let [arrived, admitted, wrong, max_admitted] = shared(4)? else {
        return Err("shared memory must have four words".into());
    };
    let count = Count { arrived, admitted, wrong, max_admitted };
    let mut children = Vec::new();
    for side in 0..2 {
        children.push(fork(|| run_side(&throttle, side, rounds, &count))?);
    }
    join(children)?;
    println!("wrong {}", wrong.load(Ordering::Relaxed));
    println!("most {}", max_admitted.load(Ordering::Relaxed));
    Ok(())
}

fn run_side(throttle: &Throttle, side: u64, rounds: u64, count: &Count) {
    let flood = throttle.domain("flood").expect("the domain exists");
    let mut random = Random::new(side + 1);
    let mut steps = 0;
    let mut wait_for_other = || {
        steps += 2;
        count.arrived.fetch_add(1, Ordering::SeqCst);
        while count.arrived.load(Ordering::SeqCst) < steps {
            yield_now();
        }
    };
    for round in 0..rounds {
        let tag = round.to_le_bytes();
        wait_for_other();
        for _ in 0..random.below(4) {
            flood.allow(random.below(1000).to_le_bytes()).expect("the throttle is open");
        }
        for _ in 0..TRIES {
            let allowed = throttle.allow(tag).expect("the throttle is open");
            count.admitted.fetch_add(u64::from(allowed), Ordering::SeqCst);
        }
        wait_for_other();
        if side == 0 {
            let charged = BURST as i64 - throttle.peek(tag).expect("the throttle is open").balance;
            let admitted = count.admitted.swap(0, Ordering::SeqCst);
            count.wrong.fetch_add(u64::from(charged != admitted as i64), Ordering::Relaxed);
            count.max_admitted.fetch_max(admitted, Ordering::Relaxed);
            throttle.reset(tag).expect("the throttle is open");
        }
        wait_for_other();
    }
}
