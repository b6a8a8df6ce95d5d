//! A check of an existing bucket allocates no memory and makes no system call.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "it traces real processes")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[path = "processes/program.rs"]
mod program;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::process::Command;
use std::time::Duration;

use dthrottle::internals;
use dthrottle::{Domain, Rule, TableConfig, Throttle};

/// The system's allocator, with a count of the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller makes the same promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number of allocations that `work` makes.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// Makes every call of the hot path, with known and new tags.
fn run_checks(domain: &Domain, rounds: std::ops::Range<u64>) {
    let mut allowed = [false; 100];
    let mut tags = [[0; 8]; 100];
    for round in rounds {
        for (tag, number) in tags.iter_mut().zip(round..) {
            *tag = number.to_le_bytes();
        }
        domain.allow_many(&tags, &mut allowed).unwrap();
        for tag in &tags {
            domain.allow(tag).unwrap();
            domain.check(tag).unwrap();
            domain.peek(tag).unwrap();
            domain.refund(tag, 1).unwrap();
            domain.charge_local(tag, 1, Duration::ZERO).unwrap();
        }
    }
}

#[test]
fn no_check_allocates() {
    let rules = [Rule::per_second(1000).burst(5), Rule::per_hour(10)];
    for table in [TableConfig::anonymous(), TableConfig::private().tags(100)] {
        let one = Throttle::builder().table(table).rule(Rule::per_minute(3));
        let throttle = one.domain("two", rules.clone()).build().unwrap();
        let two = throttle.domain("two").unwrap();
        // The first reading of the clock reads a file.
        run_checks(&throttle, 0..10);
        run_checks(&two, 0..10);
        assert_eq!(allocations(|| run_checks(&throttle, 0..150)), 0);
        assert_eq!(allocations(|| run_checks(&two, 0..20)), 0);
        // The same with an exchanged table.
        let exchange = internals::exchange(&throttle);
        exchange.keep_alive(exchange.now());
        assert_eq!(allocations(|| run_checks(&throttle, 0..50)), 0);
        assert_eq!(allocations(|| run_checks(&two, 0..20)), 0);
        // Control: a listing allocates.
        assert!(allocations(|| drop(throttle.top(3))) > 0);
    }
}

/// The system calls between the two markers.
fn calls(words: &[&str]) -> Vec<String> {
    let trace = std::env::temp_dir().join(format!("trace-{}-{}", std::process::id(), words.len()));
    let mut strace = Command::new("strace");
    strace.arg("-f").arg("-o").arg(&trace).arg(program::path()).arg("quiet").args(words);
    let status = strace.status().expect("strace is missing; `make test-core` installs it");
    assert!(status.success(), "{status}");
    let text = std::fs::read_to_string(&trace).unwrap();
    std::fs::remove_file(&trace).unwrap();
    let is_mark = |line: &&str| line.contains(" getppid(");
    assert_eq!(text.lines().filter(is_mark).count(), 2);
    let between = text.lines().skip_while(|line| !is_mark(line)).skip(1);
    between.take_while(|line| !is_mark(line)).map(str::to_string).collect()
}

#[test]
fn no_check_calls_the_system() {
    // On some machines the clock can only be read with a system call, which is allowed. Interrupted
    // calls are not calls.
    let is_clock = |line: &String| line.contains(" clock_gettime(") || line.contains(" --- SIG");
    let mut quiet = calls(&["burst=1000000000"]);
    quiet.retain(|line| !is_clock(line));
    assert_eq!(quiet, [""; 0]);
    // Control: a system call between the markers is detected.
    let mut extra_call = calls(&["burst=1000000000", "extra_call=yes"]);
    extra_call.retain(|line| !is_clock(line));
    assert_eq!(extra_call.len(), 1, "{extra_call:?}");
    assert!(extra_call[0].contains(" getuid("), "{extra_call:?}");
}
