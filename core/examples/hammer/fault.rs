//! Processes that are killed or stopped at a chosen instruction of a check.

use std::error::Error;
use std::io::{self, Read, Write};
use std::sync::atomic::Ordering;

use dthrottle::internals;
use dthrottle::internals::access::Exchange;
use dthrottle::{TableConfig, Throttle};

use super::TaskResult;
use super::options::slow;
use super::part::Part;
use super::process::{End, fork, join, shared};

const BURST: u64 = 100;
/// The lines of the tags differ in every attempt.
const ATTEMPTS: usize = 50;

/// Prints for each kill the units that the killed check charged, and the hits that a drain then
/// finds: at once, and after the next hit or with a full drain.
pub(crate) fn die() -> TaskResult {
    for (name, part, by_hit) in [
        ("before-the-swap", Part::Lines, true),
        ("before-the-bit", Part::Dirty, true),
        ("before-the-bit", Part::Dirty, false),
    ] {
        let throttle = Throttle::builder().rule(slow(BURST)).build()?;
        let exchange = internals::exchange(&throttle);
        exchange.keep_alive(exchange.now());
        throttle.allow("tag")?;
        let first = drained(&exchange, false);
        let child = fork(|| {
            part.kill_on_write(&throttle).expect("the part can be protected");
            throttle.allow("tag").expect("the throttle is open");
        })?;
        let end = child.wait()?;
        if end != End::Signal(libc::SIGSEGV) {
            return Err(
                format!("the child must be killed by SIGSEGV, but ended with {end:?}").into()
            );
        }
        let charged = BURST as i64 - 1 - throttle.peek("tag")?.balance;
        let at_once = drained(&exchange, false);
        if by_hit {
            throttle.allow("tag")?;
        }
        let later = drained(&exchange, !by_hit);
        println!("{name} {first} {charged} {at_once} {later}");
    }
    Ok(())
}

fn drained(exchange: &Exchange, all: bool) -> u64 {
    let mut hits = 0;
    exchange.drain(exchange.now(), all, |_, _| true, |entry| hits += entry.hits);
    hits
}

/// A child stops before it searches the slot of a new tag, or before it claims one. Meanwhile
/// others take the whole burst. Prints how many checks passed in total, and how many units were
/// charged.
pub(crate) fn stall() -> TaskResult {
    for (name, part) in [("before-the-search", Part::Used), ("before-the-claim", Part::Lines)] {
        let throttle = Throttle::builder().rule(slow(BURST)).build()?;
        let passed = stalled_allow(&throttle, part, || {
            while throttle.allow("tag")? {}
            Ok(())
        })?;
        let charged = BURST as i64 - throttle.peek("tag")?.balance;
        println!("{name} {passed} {charged}");
    }
    Ok(())
}

/// Like `stall`, in a table full of reusable slots. The child stops when it has chosen the oldest
/// slot of its line. Then another slot becomes older, and another process claims that slot for the
/// same tag. So the child would claim a second slot when it continues. Prints the number of
/// attempts, and how often the tag was charged for all that passed.
pub(crate) fn twice() -> TaskResult {
    let mut right = 0;
    for i in 0..ATTEMPTS {
        let table = TableConfig::anonymous().tags(1);
        let throttle = Throttle::builder().table(table).rule(slow(BURST)).build()?;
        let old = fill(&throttle)?;
        let oldest = old[i % old.len()];
        let passed = stalled_allow(&throttle, Part::Lines, || {
            throttle.reset(oldest.to_le_bytes())?;
            for _ in 0..10 {
                throttle.allow("tag")?;
            }
            Ok(())
        })?;
        let charged = BURST as i64 - throttle.peek("tag")?.balance;
        right += usize::from(passed == 11 && charged == 11);
    }
    println!("twice {ATTEMPTS} {right}");
    Ok(())
}

/// Fills a table with full buckets, and returns their tags.
fn fill(throttle: &Throttle) -> Result<Vec<u64>, Box<dyn Error>> {
    let slots = internals::table_size(throttle).1 as u64;
    let mut tags = 0_u64;
    while throttle.stats().buckets < slots {
        throttle.allow(tags.to_le_bytes())?;
        tags += 1;
    }
    let mut old = Vec::new();
    for tag in 0..tags {
        if throttle.peek(tag.to_le_bytes())?.balance < BURST as i64 {
            old.push(tag);
        }
    }
    for tag in &old {
        throttle.refund(tag.to_le_bytes(), 1)?;
    }
    Ok(old)
}

/// A child checks once, but stops before its first write to a part of the table until this process
/// has called `meanwhile`. Returns how many checks passed in total.
fn stalled_allow(
    throttle: &Throttle,
    part: Part,
    meanwhile: impl FnOnce() -> TaskResult,
) -> Result<u64, Box<dyn Error>> {
    let before = throttle.stats().allowed;
    let late = &shared(1)?[0];
    let (mut stalled, answer_pipe) = io::pipe()?;
    let (orders, mut release) = io::pipe()?;
    let child = fork(|| {
        part.stall_on_write(throttle, &answer_pipe, &orders).expect("the part can be protected");
        late.store(
            u64::from(throttle.allow("tag").expect("the throttle is open")),
            Ordering::Relaxed,
        );
    })?;
    drop(answer_pipe);
    stalled.read_exact(&mut [0])?;
    meanwhile()?;
    release.write_all(&[0])?;
    join(vec![child])?;
    Ok(throttle.stats().allowed - before + late.load(Ordering::Relaxed))
}
