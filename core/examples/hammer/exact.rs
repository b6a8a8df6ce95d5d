//! Many children on one anonymous table, which all check the same tags.

use std::sync::atomic::Ordering;

use super::TaskResult;
use super::options::Options;
use super::process::{StartGate, fork, join, shared};

/// Prints for every tag the units that passed in the race and the units that passed afterwards, and
/// for every bucket its rule and balance.
pub(crate) fn run(options: &Options) -> TaskResult {
    let throttle = options.builder()?.build()?;
    let (processes, tags) = (options.number("processes")?, options.number("tags-asked")?);
    let tries = options.number("tries")?;
    let admitted = shared(tags as usize)?;
    let mut gate = StartGate::new()?;
    let mut children = Vec::new();
    for _ in 0..processes {
        children.push(fork(|| {
            gate.wait().expect("the gate works");
            for _ in 0..tries {
                for (tag, count) in admitted.iter().enumerate() {
                    let allowed = throttle.allow(tag.to_le_bytes()).expect("the throttle is open");
                    count.fetch_add(u64::from(allowed), Ordering::Relaxed);
                }
            }
        })?);
    }
    gate.open(children.len());
    join(children)?;
    for (tag, count) in admitted.iter().enumerate() {
        let mut rest = 0;
        while throttle.allow(tag.to_le_bytes())? {
            rest += 1;
        }
        println!("tag {} {rest}", count.load(Ordering::Relaxed));
    }
    for bucket in throttle.top(10_000) {
        println!("bucket {} {}", bucket.rule, bucket.balance);
    }
    Ok(())
}
