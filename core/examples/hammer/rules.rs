//! A table whose list of rules is full: some processes change their rules all the time, others use
//! theirs.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use dthrottle::{Config, Rule, Throttle};

use super::TaskResult;
use super::options::{Options, slow};
use super::process::{Random, fork, join, wait_for_killed};

/// Rules that are held all the time, so that the list soon becomes full again.
const HELD: [usize; 5] = [1000, 1000, 1000, 1000, 60];
const BURST: u64 = 1000;

/// The throttle with another burst.
fn reloaded(throttle: &Throttle, burst: u64) -> dthrottle::Result<Throttle> {
    let mut config = Config::default();
    config.add_rule(Config::DEFAULT, slow(burst).name("limit"));
    throttle.reload(config)
}

/// Throttles that hold nearly all indexes.
fn hold_many(throttle: &Throttle) -> dthrottle::Result<Vec<Throttle>> {
    let held = HELD.iter().zip(1..).map(|(count, burst)| {
        let mut config = Config::default();
        for i in 0..*count {
            let rule = slow(burst).name(format!("rule{i}"));
            config.add_rule(&format!("domain{}", i / 16), rule);
        }
        throttle.reload(config)
    });
    held.collect()
}

/// Reloads `count` times, each time with another burst, and returns the last throttle.
pub(crate) fn cycle(throttle: &Throttle, first: u64, count: u64) -> dthrottle::Result<Throttle> {
    let mut last = throttle.clone();
    for burst in first..first + count {
        last = reloaded(throttle, burst)?;
    }
    Ok(last)
}

/// A child inherits a rule without buckets. The parent drops that rule and cycles through more
/// rules than fit into the list. Then the child takes 3 of 1,000 units. Prints the balance that
/// another throttle reads.
pub(crate) fn forked(options: &Options) -> TaskResult {
    let (orders, mut order_pipe) = io::pipe()?;
    let host = Throttle::builder().rule(Rule::unlimited()).table(options.table()?).build()?;
    let throttle = reloaded(&host, BURST)?;
    let child = fork(|| {
        (&orders).read_exact(&mut [0]).expect("the pipe works");
        assert!((0..3).all(|_| throttle.allow("tag").expect("the throttle is open")));
    })?;
    drop(throttle);
    let last = cycle(&host, 2 * BURST, options.number("rounds")?)?;
    order_pipe.write_all(&[0])?;
    join(vec![child])?;
    println!("balance {}", last.peek("tag")?.balance);
    Ok(())
}

/// A child closes all descriptors, as daemons do, and changes its rule. Then the parent cycles
/// through more rules than fit into the list. Prints whether each succeeded, and the balance of the
/// child's rule.
pub(crate) fn closed(options: &Options) -> TaskResult {
    let host = Throttle::builder().rule(Rule::unlimited()).table(options.table()?).build()?;
    let (mut answers, answer_pipe) = io::pipe()?;
    let (orders, mut order_pipe) = io::pipe()?;
    let child = fork(|| {
        let keep = [answer_pipe.as_raw_fd(), orders.as_raw_fd()];
        for fd in (3..100).filter(|fd| !keep.contains(fd)) {
            // SAFETY: a plain system call. Nothing that is closed here is used again.
            unsafe { libc::close(fd) };
        }
        let throttle = reloaded(&host, BURST);
        (&answer_pipe).write_all(&[u8::from(throttle.is_ok())]).expect("the pipe works");
        (&orders).read_exact(&mut [0]).expect("the pipe works");
        assert!((0..3).all(|_| {
            throttle.as_ref().is_ok_and(|t| t.allow("tag").expect("the throttle is open"))
        }));
    })?;
    drop(answer_pipe);
    let mut answer = [0];
    answers.read_exact(&mut answer)?;
    let last = cycle(&host, 2 * BURST, options.number("rounds")?);
    order_pipe.write_all(&[0])?;
    join(vec![child])?;
    println!("reloads {} {}", answer[0], u8::from(last.is_ok()));
    let why = last.err().map_or(String::new(), |error| error.to_string());
    println!("pinned {}", u8::from(why.contains("a process could not lock the table's file")));
    // An existing rule is always found.
    println!("balance {}", reloaded(&host, 2 * BURST + 4000)?.peek("tag")?.balance);
    Ok(())
}

/// Kills children that change their rules at random moments. Prints how often a balance was
/// misread, the balances of a bucket and of a rule without buckets, and the room in the list.
pub(crate) fn killed(options: &Options) -> TaskResult {
    let host = Throttle::builder().rule(Rule::unlimited()).table(options.table()?).build()?;
    let throttle = reloaded(&host, BURST)?;
    let unnamed = reloaded(&host, BURST + 1)?;
    assert!((0..3).all(|_| throttle.allow("tag").expect("the throttle is open")));
    let held = hold_many(&host)?;
    let rounds = options.number("rounds")?;
    let mut random = Random::new(rounds);
    let mut misread = 0;
    for round in 0..rounds {
        let first = (round + 1) << 32;
        let children = [0, 1].map(|i| fork(|| drop(cycle(&host, first + (i << 31), 1 << 30))));
        thread::sleep(Duration::from_micros(random.below(20_000) as u64));
        for child in children {
            let child = child?;
            child.kill();
            wait_for_killed([child])?;
        }
        let next = reloaded(&host, 2 * BURST + round)?;
        misread += u64::from(next.peek("tag")?.balance != 997);
    }
    assert!((0..5).all(|_| unnamed.allow("late").expect("the throttle is open")));
    let next = cycle(&host, BURST + 2, 100)?;
    println!("misread {misread}");
    println!("balances {} {}", next.peek("tag")?.balance, next.peek("late")?.balance);
    drop(held);
    // No entry of the list is lost: it holds as many rules as before.
    println!("room {}", hold_many(&host).map_or(0, |held| held.len()));
    Ok(())
}
