//! Which rules `reclaim_rules` frees.

use super::*;

const OTHER: u64 = 2;

/// A table with a second rule of 1/s and a burst of 20.
fn with_other_rule() -> (TestTable, u16, Scale) {
    let test = TestTable::new(70, 10);
    let scale = per_second(20);
    let rule = test.table.rule_index(OTHER, &scale).unwrap();
    (test, rule, scale)
}

fn charge(test: &TestTable, rule: u16, scale: &Scale, fingerprint: u64, units: u64, hits: i64) {
    let step = |tat| BucketUpdate { tat: scale.charge(tat, SECOND, units), hits, answer: () };
    let key = Key { fingerprint, rule };
    test.table.update(key, scale, SECOND, Some(SECOND), step).unwrap();
}

/// Returns true if the other rule survives a reclaim in which only that rule has no users.
fn survives_reclaim(test: &TestTable, now: u64, rule: u16) -> bool {
    test.table.reclaim_rules(now, |index| index == rule);
    assert!(test.table.rule(test.rule).is_some(), "a rule in use is not freed");
    test.table.rule(rule).is_some()
}

#[test]
fn a_rule_without_buckets_is_freed_and_its_index_reused() {
    let (test, rule, _) = with_other_rule();
    assert!(!survives_reclaim(&test, SECOND, rule));
    assert_eq!(test.table.rules().count(), 1);
    let third = per_second(30);
    assert_eq!(test.table.rule_index(3, &third), Some(rule));
    assert_eq!(test.table.rule(rule), Some((3, third)));
    assert_eq!(test.table.rule_index(4, &third), Some(rule + 1));
}

#[test]
fn a_rule_in_use_is_not_freed() {
    let (test, rule, scale) = with_other_rule();
    test.table.reclaim_rules(SECOND, |_| false);
    assert_eq!(test.table.rule(rule), Some((OTHER, scale)));
}

#[test]
fn a_bucket_in_debt_keeps_its_rule_until_it_is_full() {
    let (test, rule, scale) = with_other_rule();
    charge(&test, rule, &scale, 7, 4, 0);
    assert!(survives_reclaim(&test, SECOND, rule));
    assert!(survives_reclaim(&test, 5 * SECOND - 1, rule));
    assert_eq!(test.table.live(SECOND), 1);
    assert!(!survives_reclaim(&test, 5 * SECOND, rule));
    // Another rule at the same index finds no bucket.
    let third = per_second(30);
    let rule = test.table.rule_index(OTHER, &third).unwrap();
    assert_eq!(test.table.read(Key { fingerprint: 7, rule }, &third, SECOND), 0);
    assert_eq!(test.table.live(SECOND), 0);
    charge(&test, rule, &third, 7, 3, 0);
    assert_eq!(test.all_used(SECOND).iter().map(|(_, used)| *used).collect::<Vec<_>>(), [3]);
}

/// The bucket may be far from its home line.
#[test]
fn one_remaining_bucket_keeps_its_rule() {
    let (test, rule, scale) = with_other_rule();
    (0..200).for_each(|n| charge(&test, rule, &scale, at_home(69, 70, n % 8), 1 + n % 3, 0));
    assert!(survives_reclaim(&test, 2 * SECOND, rule));
    assert!(test.table.live(2 * SECOND) > 4, "buckets are in the second line too");
    assert!(!survives_reclaim(&test, 2000 * SECOND, rule));
}

#[test]
fn a_bucket_with_pending_hits_keeps_its_rule() {
    let (test, rule, scale) = with_other_rule();
    test.table.set_exchanged(SECOND);
    charge(&test, rule, &scale, 7, 1, 1);
    assert!(
        survives_reclaim(&test, 10 * SECOND, rule),
        "the bucket is full, but its hits are pending"
    );
    assert!(!survives_reclaim(&test, 20 * SECOND, rule), "no process exchanges any more");
    assert_eq!(test.table.unreported.get(), 1);
}

/// A process pins the rules if it cannot lock those that it uses.
#[test]
fn pinned_rules_are_not_freed() {
    let (test, rule, scale) = with_other_rule();
    let half_written = test.table.add_rule(3, &scale, true, |_| true).unwrap();
    test.table.region.rule(half_written).unwrap().set_ready(false);
    test.table.pin_rules();
    assert!(survives_reclaim(&test, SECOND, rule));
    assert_eq!(
        test.table.rule_index(4, &scale),
        Some(half_written + 1),
        "another process may be writing the half-written entry"
    );
}

/// The same index may name another rule there.
#[test]
fn a_copied_table_assigns_its_own_rule_indexes() {
    let (test, rule, scale) = with_other_rule();
    charge(&test, rule, &scale, at_home(5, 70, 1), 4, 0);
    let copy = TestTable::new(100, 10);
    let first = per_second(5);
    assert_eq!(copy.table.rule_index(9, &first), Some(rule));
    copy.table.copy_from(&test.table, SECOND);
    assert_eq!(copy.table.rules().count(), 3);
    let used: Vec<i64> = copy.all_used(SECOND).iter().map(|(_, used)| *used).collect();
    assert_eq!(used, [4]);
    assert_eq!(copy.table.rule(rule + 1), Some((OTHER, scale)));
}
