//! Bursts are exact, however many processes check a tag.

use crate::folder::Folder;
use crate::hammer::Worker;
use crate::tasks::{numbers, run};

const TAGS: usize = 100;
const BURST: i64 = 1000;
const PROCESSES: usize = 8;

/// Together the processes check each tag twice as often as its burst allows.
const EXACT: [&str; 4] = ["exact", "processes=8", "tags-asked=100", "tries=250"];

#[test]
fn forked_children_together_get_exactly_the_burst() {
    let lines = run(&[&EXACT[..], &["burst=1000"]].concat());
    assert_eq!(numbers(&lines, "tag"), vec![vec![BURST, 0]; TAGS]);
}

/// Control: every child has its own table.
#[test]
fn children_with_private_tables_each_get_the_burst() {
    let lines = run(&[&EXACT[..], &["burst=1000", "private=yes"]].concat());
    // Each child checks 250 times and does not see the checks of the others.
    assert_eq!(numbers(&lines, "tag"), vec![vec![2000, BURST]; TAGS]);
}

#[test]
fn unrelated_processes_together_get_exactly_the_burst() {
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

/// In a race, a check may be refused because another one was about to take the last unit and then
/// gave it back. But never more than the smaller burst passes, and a lost race gives back every
/// unit under both rules.
#[test]
fn processes_never_exceed_two_rules_and_lose_no_unit() {
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

/// Processes that claim a slot for the same tag at the same moment share one bucket. The table is
/// so small that it has two lines.
#[test]
fn simultaneous_claims_of_one_tag_admit_exactly_the_burst() {
    let lines = run(&["claim", "tags=1", "rounds=10000"]);
    assert_eq!(numbers(&lines, "wrong"), [[0]]);
    assert_eq!(numbers(&lines, "most"), [[4]]);
}
