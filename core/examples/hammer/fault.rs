//! Processes that die or stop at a chosen place in the middle of a check.

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
/// Where the tags lie is another matter every time.
const ATTEMPTS: usize = 50;

/// Prints for each death what was charged by it, and what an exchanger then finds: at once, after
/// the next hit, or when it looks everywhere.
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
            part.kill_on_write(&throttle).expect("a read-only part");
            throttle.allow("tag").expect("open");
        })?;
        let end = child.wait()?;
        if end != End::Signal(libc::SIGSEGV) {
            return Err(format!("the child was to die, but ended with {end:?}").into());
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

/// A child stops before it claims a slot for a new tag, because it has not found it, or before the
/// claim itself. Meanwhile others take the whole burst. Prints how many passed in all, and what is
/// left.
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

/// The same in a table full of slots that nobody needs. The child has chosen the oldest of its line
/// when it stops; then another slot is made older still, and it is that which the tag gets. So the
/// child would take a second one when it goes on. Prints how often that was tried, and how often
/// the tag was charged for all that passed.
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

/// Fills a table with full buckets; their tags.
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

/// A child asks once, but stops before it first writes to a part of the table, until this process
/// has done something. How many requests passed in all.
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
        part.stall_on_write(throttle, &answer_pipe, &orders).expect("a read-only part");
        late.store(u64::from(throttle.allow("tag").expect("open")), Ordering::Relaxed);
    })?;
    drop(answer_pipe);
    stalled.read_exact(&mut [0])?;
    meanwhile()?;
    release.write_all(&[0])?;
    join(vec![child])?;
    Ok(throttle.stats().allowed - before + late.load(Ordering::Relaxed))
}
