//! Two configurations on one table, as in a rolling deployment: no bucket is misread.

use dthrottle::{Rule, Throttle};

use crate::folder::Folder;
use crate::hammer::Worker;
use crate::{balance, open, slow, take, web};

#[test]
fn a_new_burst_keeps_the_balance() {
    let folder = Folder::new();
    let old = open(web(&folder), 10).unwrap();
    take(&old, "tag", 4);
    let larger = open(web(&folder), 100).unwrap();
    assert_eq!(balance(&larger, "tag"), 6, "the balance is unchanged");
    let smaller = open(web(&folder), 5).unwrap();
    assert_eq!(balance(&smaller, "tag"), 5, "the balance is cut to the new burst");
    assert_eq!(balance(&old, "tag"), 6, "a peek changes nothing");
    // Both processes continue, and each counts what the other takes.
    take(&larger, "tag", 2);
    assert_eq!((balance(&old, "tag"), balance(&larger, "tag")), (4, 4));
    take(&old, "tag", 3);
    assert_eq!(
        (balance(&old, "tag"), balance(&larger, "tag"), balance(&smaller, "tag")),
        (1, 1, 1)
    );
    take(&smaller, "tag", 1);
    for throttle in [&old, &larger, &smaller] {
        assert!(!throttle.allow("tag").unwrap());
    }
}

/// A debt in units is kept, however different the rates.
#[test]
fn a_new_rate_keeps_the_debt() {
    let folder = Folder::new();
    let old = open(web(&folder), 10).unwrap();
    take(&old, "tag", 10);
    old.charge_local("tag", 5, std::time::Duration::ZERO).unwrap();
    let with = |rule: Rule| {
        let builder = Throttle::builder().table(web(&folder)).rule(rule.name("limit"));
        builder.build().unwrap()
    };
    let by_the_hour = with(Rule::per_hour(1).burst(10));
    assert_eq!(balance(&by_the_hour, "tag"), -5);
    assert!(!by_the_hour.allow("tag").unwrap());
    // A rule with another name has its own buckets.
    let other = Throttle::builder().table(web(&folder)).rule(slow(10).name("other"));
    assert_eq!(balance(&other.build().unwrap(), "tag"), 10);
    assert_eq!(balance(&old, "tag"), -5);
}

/// Processes of both configurations take units at the same time. Together they never exceed the
/// larger burst.
#[test]
fn processes_with_two_configurations_share_one_bucket() {
    let folder = Folder::new();
    let dir = format!("dir={}", folder.path());
    let mut workers: Vec<Worker> = ["1000", "1500"]
        .into_iter()
        .cycle()
        .take(4)
        .map(|burst| {
            let burst = format!("burst={burst}");
            Worker::open(&["name=web", "tags=1", &dir, &burst, "rule=limit"]).unwrap()
        })
        .collect();
    // The bucket exists, under the smaller burst.
    assert_eq!(workers[0].request("allow tag 1"), 1);
    for worker in &mut workers {
        worker.send("allow tag 5000");
    }
    let sum: i64 = workers.iter_mut().map(|worker| worker.read_answer()[0]).sum();
    assert_eq!(sum, 999);
    for worker in &mut workers {
        assert_eq!(worker.request("balance tag"), 0);
    }
}
