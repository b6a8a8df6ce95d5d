//! One process of a table runs the exchange, whoever is killed and whatever is forked.

use crate::folder::Folder;
use crate::tasks::{numbers, run};

/// A task with a table that children inherit, and with one that has a name.
fn with_both_tables(task: &str, words: &[&str], check: impl Fn(&[Vec<String>], bool)) {
    check(&run(&[&[task], words].concat()), false);
    let folder = Folder::new();
    let dir = format!("dir={}", folder.path());
    check(&run(&[&[task, "name=lock", &dir], words].concat()), true);
}

/// The holder is killed while a child of it lives on: the lock is free at once.
#[test]
fn a_lock_dies_with_its_holder() {
    with_both_tables("lock-orphan", &[], |lines, _| {
        assert_eq!(numbers(lines, "shadow"), [[0]], "a child does not hold what it inherited");
        assert_eq!(numbers(lines, "alive"), [[0, 0]], "one holder");
        assert_eq!(numbers(lines, "dead"), [[1, 0]], "and then another");
        assert_eq!(numbers(lines, "back"), [[1]], "given back");
    });
}

/// A program that becomes a daemon closes what it does not know. A named table's file is found
/// again; what has no name is an error, and never another file's lock.
#[test]
fn a_lock_outlives_closed_descriptors_and_removed_names() {
    with_both_tables("lock-closed", &[], |lines, named| {
        let found = if named { 1 } else { 9 };
        assert_eq!(numbers(lines, "closed"), [[found]]);
        assert_eq!(numbers(lines, "reused"), [[found]]);
        if named {
            assert_eq!(numbers(lines, "removed"), [[1, 0]]);
        }
    });
}

/// Whatever moment a fork falls into, no child ever holds the lock.
#[test]
fn forks_at_any_moment_inherit_no_lock() {
    with_both_tables("lock-race", &["rounds=500"], |lines, _| {
        assert_eq!(numbers(lines, "children"), [[500]]);
        assert!(numbers(lines, "tries")[0][0] > 100, "{lines:?}");
        assert_eq!(numbers(lines, "held"), [[0]]);
        assert_eq!(numbers(lines, "after"), [[1]]);
    });
}

/// The same when the holder is killed: no child has got hold of what it had just opened.
#[test]
fn kills_between_forks_free_the_lock() {
    with_both_tables("lock-killed", &["rounds=500"], |lines, _| {
        assert!(numbers(lines, "tries")[0][0] > 10, "{lines:?}");
        assert_eq!(numbers(lines, "held"), [[0]]);
    });
}
