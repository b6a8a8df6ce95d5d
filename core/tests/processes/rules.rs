//! A table takes any number of rules over time, while processes use, fork and kill.

use crate::folder::Folder;
use crate::hammer::Worker;
use crate::tasks::{numbers, run};

/// Runs a task with a table that children inherit, and with a named table.
fn with_both_tables(task: &str, words: &[&str], check: impl Fn(&[Vec<String>], bool)) {
    check(&run(&[&[task], words].concat()), false);
    let folder = Folder::new();
    let dir = format!("dir={}", folder.path());
    check(&run(&[&[task, "name=rules", "tags=1", &dir], words].concat()), true);
}

#[test]
fn a_forked_child_keeps_a_rule_that_its_parent_gave_up() {
    with_both_tables("rules-forked", &["rounds=5000"], |lines, _| {
        assert_eq!(numbers(lines, "balance"), [[997]]);
    });
}

#[test]
fn the_list_of_rules_works_after_processes_were_killed_while_changing_it() {
    let rounds =
        if std::env::var_os("DTHROTTLE_DEEP").is_some() { "rounds=2000" } else { "rounds=50" };
    with_both_tables("rules-killed", &[rounds], |lines, _| {
        assert_eq!(numbers(lines, "misread"), [[0]]);
        assert_eq!(numbers(lines, "balances"), [[997, 996]]);
        assert_eq!(numbers(lines, "room"), [[5]]);
    });
}

/// A program that becomes a daemon closes all descriptors. A named table's file is opened again by
/// its path. Without a name, the rules of the table are pinned.
#[test]
fn a_process_that_closed_all_descriptors_keeps_its_rule() {
    with_both_tables("rules-closed", &["rounds=5000"], |lines, named| {
        assert_eq!(numbers(lines, "reloads"), [[1, i64::from(named)]]);
        assert_eq!(numbers(lines, "pinned"), [[i64::from(!named)]]);
        assert_eq!(numbers(lines, "balance"), [[997]]);
    });
}

/// Unrelated processes: some use their rules, while others cycle through thousands of rules and are
/// killed.
#[test]
fn a_process_keeps_its_rule_while_others_cycle_through_thousands_of_rates() {
    let folder = Folder::new();
    let dir = format!("dir={}", folder.path());
    let open =
        |burst: &str| Worker::open(&["name=web", "tags=1", &dir, burst, "rule=limit"]).unwrap();
    let mut live = open("burst=1000");
    // `live` has no bucket that names its rule yet, `busy` has one.
    let mut busy = open("burst=500");
    assert_eq!(busy.request("allow busy 100"), 100);
    for round in 1..=3 {
        let mut other = open("burst=10");
        assert_eq!(other.request(&format!("cycle {} 3000", round * 10_000)), 3000);
        // Killed in the middle of its next reloads.
        other.send(&format!("cycle {} 3000", round * 10_000 + 5000));
        other.kill();
        assert_eq!(busy.request("balance busy"), 400);
    }
    assert_eq!(live.request("allow tag 250"), 250);
    let mut last = open("burst=2000");
    assert_eq!((last.request("balance tag"), last.request("balance busy")), (750, 400));
    assert_eq!(last.request("cycle 100000 5000"), 5000);
    assert_eq!((last.request("balance tag"), last.request("balance busy")), (750, 400));
    assert_eq!((live.request("balance tag"), busy.request("balance busy")), (750, 400));
}

/// gVisor and some file systems do not support locks on open file descriptions.
#[test]
fn a_table_works_after_use_by_a_process_without_file_locks() {
    let mut alone = Worker::open(&["burst=10", "rule=limit", "locks=none"]).unwrap();
    assert_eq!(alone.request("allow tag 20"), 10);
    let folder = Folder::new();
    let dir = format!("dir={}", folder.path());
    let words = ["name=web", "tags=1", &dir, "burst=1000", "rule=limit"];
    let mut without = Worker::open(&[&words[..], &["locks=none"]].concat()).unwrap();
    assert_eq!(without.request("allow tag 250"), 250);
    assert_eq!(without.request("cycle 5000 100"), 100);
    let mut with = Worker::open(&words).unwrap();
    assert_eq!(with.request("balance tag"), 750);
    assert_eq!(with.request("cycle 10000 3900"), 3900);
    assert_eq!((with.request("balance tag"), without.request("balance tag")), (750, 750));
}

#[test]
fn rules_are_reused_after_a_process_was_short_of_descriptors() {
    let folder = Folder::new();
    let dir = format!("dir={}", folder.path());
    let words = ["name=web", "tags=1", &dir, "burst=1000", "rule=limit"];
    let mut short = Worker::open(&words).unwrap();
    for spare in 0..2 {
        short.request(&format!("spare {spare}"));
        assert_ne!(short.request("reload 7"), 1, "with {spare} descriptors");
    }
    assert_eq!(short.request("allow tag 250"), 250);
    for spare in 0..3 {
        let spare = format!("spare={spare}");
        assert!(Worker::open(&[&words[..], &[&spare]].concat()).is_err());
    }
    let mut other = Worker::open(&words).unwrap();
    assert_eq!(other.request("cycle 10000 5000"), 5000);
    assert_eq!(other.request("balance tag"), 750);
    short.request("spare 5");
    assert_eq!(short.request("reload 7"), 1);
}
