//! Rules that are freed, and those that are not.

use super::*;

const OTHER: u64 = 2;

/// A table with one more rule, of ten units at one a second.
fn test() -> (TestTable, u16, Scale) {
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

/// Whether the other rule is there after all rules that nothing needs were freed.
fn is_kept(test: &TestTable, now: u64, rule: u16) -> bool {
    test.table.reclaim_rules(now, |index| index == rule);
    assert!(test.table.rule(test.rule).is_some(), "somebody uses it");
    test.table.rule(rule).is_some()
}

#[test]
fn a_rule_that_no_bucket_names_is_freed_and_its_index_used_again() {
    let (test, rule, _) = test();
    assert!(!is_kept(&test, SECOND, rule));
    assert_eq!(test.table.rules().count(), 1);
    let third = per_second(30);
    assert_eq!(test.table.rule_index(3, &third), Some(rule));
    assert_eq!(test.table.rule(rule), Some((3, third)));
    assert_eq!(test.table.rule_index(4, &third), Some(rule + 1));
}

#[test]
fn a_rule_in_use_is_not_freed() {
    let (test, rule, scale) = test();
    test.table.reclaim_rules(SECOND, |_| false);
    assert_eq!(test.table.rule(rule), Some((OTHER, scale)));
}

#[test]
fn a_bucket_in_debt_keeps_its_rule_until_it_is_full() {
    let (test, rule, scale) = test();
    charge(&test, rule, &scale, 7, 4, 0);
    assert!(is_kept(&test, SECOND, rule));
    assert!(is_kept(&test, 5 * SECOND - 1, rule));
    assert_eq!(test.table.live(SECOND), 1);
    assert!(!is_kept(&test, 5 * SECOND, rule));
    // Another rule at its index finds nothing there.
    let third = per_second(30);
    let rule = test.table.rule_index(OTHER, &third).unwrap();
    assert_eq!(test.table.read(Key { fingerprint: 7, rule }, &third, SECOND), 0);
    assert_eq!(test.table.live(SECOND), 0);
    charge(&test, rule, &third, 7, 3, 0);
    assert_eq!(test.all_used(SECOND).iter().map(|(_, used)| *used).collect::<Vec<_>>(), [3]);
}

/// However far from home it lies.
#[test]
fn the_last_of_many_buckets_keeps_its_rule() {
    let (test, rule, scale) = test();
    (0..200).for_each(|n| charge(&test, rule, &scale, at_home(69, 70, n % 8), 1 + n % 3, 0));
    assert!(is_kept(&test, 2 * SECOND, rule));
    assert!(test.table.live(2 * SECOND) > 4, "also in the second line");
    assert!(!is_kept(&test, 2000 * SECOND, rule));
}

#[test]
fn hits_that_peers_have_yet_to_hear_of_keep_their_rule() {
    let (test, rule, scale) = test();
    test.table.set_exchanged(SECOND);
    charge(&test, rule, &scale, 7, 1, 1);
    assert!(is_kept(&test, 10 * SECOND, rule), "full, but not reported");
    assert!(!is_kept(&test, 20 * SECOND, rule), "nobody reports any more");
    assert_eq!(test.table.unreported.get(), 1);
}

/// A process that cannot say which rules it uses.
#[test]
fn rules_that_are_pinned_stay() {
    let (test, rule, scale) = test();
    let half_written = test.table.add_rule(3, &scale, true, |_| true).unwrap();
    test.table.region.rule(half_written).unwrap().set_ready(false);
    test.table.pin_rules();
    assert!(is_kept(&test, SECOND, rule));
    assert_eq!(test.table.rule_index(4, &scale), Some(half_written + 1), "perhaps at this moment");
}

/// The same index may mean another rule there.
#[test]
fn a_copy_gives_rules_indexes_of_its_own() {
    let (test, rule, scale) = test();
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
