//! A burst is a burst, however many processes ask for it.

use crate::folder::Folder;
use crate::hammer::Worker;
use crate::tasks::{numbers, run};

const TAGS: usize = 100;
const BURST: i64 = 1000;
const PROCESSES: usize = 8;

/// Together they ask for each tag twice as often as it may pass.
const EXACT: [&str; 4] = ["exact", "processes=8", "tags-asked=100", "tries=250"];

#[test]
fn forked_children_share_every_burst_exactly() {
    let lines = run(&[&EXACT[..], &["burst=1000"]].concat());
    assert_eq!(numbers(&lines, "tag"), vec![vec![BURST, 0]; TAGS]);
}

/// The control: children that each have a table of their own.
#[test]
fn without_sharing_every_child_has_a_burst_of_its_own() {
    let lines = run(&[&EXACT[..], &["burst=1000", "private=yes"]].concat());
    // Each child asks 250 times, and none is told of the others.
    assert_eq!(numbers(&lines, "tag"), vec![vec![2000, BURST]; TAGS]);
}

#[test]
fn unrelated_processes_share_every_burst_exactly() {
    let folder = Folder::new();
    let dir = format!("dir={}", folder.path());
    let words = ["name=exact", &dir, "burst=1000", "tags=1000"];
    let mut workers: Vec<Worker> = (0..PROCESSES).map(|_| Worker::open(&words).unwrap()).collect();
    for worker in &mut workers {
        assert_eq!(worker.warnings, [""; 0]);
        worker.send("spread 100 250");
    }
    let mut sums = vec![0; TAGS];
    for worker in &mut workers {
        for (sum, admitted) in sums.iter_mut().zip(worker.read_answer()) {
            *sum += admitted;
        }
    }
    assert_eq!(sums, vec![BURST; TAGS]);
    assert_eq!(workers[0].request("allow another 2000"), BURST);
    assert_eq!(folder.files().len(), 1);
}

/// In a race a check may be refused because another was about to take the last unit and then could
/// not: never more than the smaller burst passes, and what a lost race took is given back to the
/// last unit, under both rules.
#[test]
fn two_rules_are_never_exceeded_and_nothing_is_lost() {
    for bursts in [["burst=1000", "burst=700"], ["burst=700", "burst=1000"]] {
        let lines = run(&[&EXACT[..], &bursts].concat());
        let tags = numbers(&lines, "tag");
        assert_eq!(tags.len(), TAGS);
        for tag in tags {
            let (raced, rest) = (tag[0], tag[1]);
            assert!(raced <= 700 && rest >= 0);
            assert_eq!(raced + rest, 700);
        }
        let buckets = |rule: &str, balance: &str| {
            let wanted = ["bucket", rule, balance];
            lines.iter().filter(|line| **line == wanted).count()
        };
        assert_eq!((buckets("of-700", "0"), buckets("of-1000", "300")), (TAGS, TAGS));
    }
}

/// Processes that claim a slot for one tag at once get one between them. So small a table has two
/// lines.
#[test]
fn claims_of_one_tag_at_once_are_exact() {
    let lines = run(&["claim", "tags=1", "rounds=10000"]);
    assert_eq!(numbers(&lines, "wrong"), [[0]]);
    assert_eq!(numbers(&lines, "most"), [[4]]);
}
