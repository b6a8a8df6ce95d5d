//! Checks between two marker system calls. A test traces which other system calls happen between
//! them.

use dthrottle::{Domain, Throttle};

use super::TaskResult;
use super::options::{Options, slow};

const TAGS: [&str; 3] = ["203.0.113.7", "2001:db8::1", "alice"];

pub(crate) fn run(options: &Options) -> TaskResult {
    let builder = options.builder()?.domain("two", [slow(10), slow(1_000_000)]);
    let throttle = builder.build()?;
    let two = throttle.domain("two")?;
    // The clock reads a system file once, and each tag claims its slot once.
    run_checks(&throttle, &two, 5_000)?;
    mark();
    run_checks(&throttle, &two, 2_000)?;
    if options.get("extra_call").is_some() {
        // SAFETY: a plain system call.
        unsafe { libc::getuid() };
    }
    mark();
    Ok(())
}

fn mark() {
    // SAFETY: a plain system call.
    unsafe { libc::getppid() };
}

fn run_checks(throttle: &Throttle, two: &Domain, times: usize) -> TaskResult {
    let mut allowed = [false; TAGS.len()];
    for i in 0..times {
        let tag = TAGS[i % TAGS.len()];
        for domain in [throttle, two] {
            domain.allow(tag)?;
            domain.check(tag)?;
            domain.peek(tag)?;
            domain.allow_many(&TAGS, &mut allowed)?;
            domain.refund(tag, 1)?;
        }
    }
    Ok(())
}
