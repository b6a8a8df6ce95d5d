//! Exactly one process of a table holds the lock of the exchange, whichever processes are killed or
//! forked.

use crate::folder::Folder;
use crate::tasks::{numbers, run};

/// Runs a task with a table that children inherit, and with a named table.
fn with_both_tables(task: &str, words: &[&str], check: impl Fn(&[Vec<String>], bool)) {
    check(&run(&[&[task], words].concat()), false);
    let folder = Folder::new();
    let dir = format!("dir={}", folder.path());
    check(&run(&[&[task, "name=lock", &dir], words].concat()), true);
}

/// The holder is killed while its own child lives on, and the lock is free at once.
#[test]
fn a_killed_process_releases_the_lock_although_its_child_lives() {
    with_both_tables("lock-orphan", &[], |lines, _| {
        assert_eq!(numbers(lines, "shadow"), [[0]], "a child does not hold the inherited lock");
        assert_eq!(
            numbers(lines, "alive"),
            [[0, 0]],
            "neither can take the lock while the holder lives"
        );
        assert_eq!(numbers(lines, "dead"), [[1, 0]], "one process takes the lock after the kill");
        assert_eq!(numbers(lines, "back"), [[1]], "the child can take the lock after its release");
    });
}

/// A program that becomes a daemon closes all descriptors. A named table's file is opened again by
/// its path. A table without a name gives an error, never the lock of another file.
#[test]
fn the_lock_works_after_closed_descriptors_and_removed_names() {
    with_both_tables("lock-closed", &[], |lines, named| {
        let found = if named { 1 } else { 9 };
        assert_eq!(numbers(lines, "closed"), [[found]]);
        assert_eq!(numbers(lines, "reused"), [[found]]);
        if named {
            assert_eq!(numbers(lines, "removed"), [[1, 0]]);
        }
    });
}

/// Whenever a fork happens, the child does not hold the lock.
#[test]
fn forked_children_never_hold_the_lock() {
    with_both_tables("lock-race", &["rounds=500"], |lines, _| {
        assert_eq!(numbers(lines, "children"), [[500]]);
        assert!(numbers(lines, "tries")[0][0] > 100, "{lines:?}");
        assert_eq!(numbers(lines, "held"), [[0]]);
        assert_eq!(numbers(lines, "after"), [[1]]);
    });
}

/// The holder is killed while it forks. Its children do not hold what it had just opened.
#[test]
fn killing_a_forking_process_releases_the_lock() {
    with_both_tables("lock-killed", &["rounds=500"], |lines, _| {
        assert!(numbers(lines, "tries")[0][0] > 10, "{lines:?}");
        assert_eq!(numbers(lines, "held"), [[0]]);
    });
}
