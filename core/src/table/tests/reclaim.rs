//! Rules that are freed, and those that are not.

use super::*;

const OTHER: u64 = 2;

/// A table with one more rule, of ten units at one a second.
fn rig() -> (Rig, u16, Scale) {
    let rig = Rig::new(70, 10);
    let scale = per_second(20);
    let rule = rig.table.rule_index(OTHER, &scale).unwrap();
    (rig, rule, scale)
}

fn charge(rig: &Rig, rule: u16, scale: &Scale, fingerprint: u64, units: u64, hits: i64) {
    let step = |tat| Step { tat: scale.charge(tat, SECOND, units), hits, answer: () };
    let key = Key { fingerprint, rule };
    rig.table.update(key, scale, SECOND, Some(SECOND), step).unwrap();
}

/// Whether the other rule is there after all rules that nothing needs were freed.
fn is_kept(rig: &Rig, now: u64, rule: u16) -> bool {
    rig.table.reclaim_rules(now, |index| index == rule);
    assert!(rig.table.rule(rig.rule).is_some(), "somebody uses it");
    rig.table.rule(rule).is_some()
}

#[test]
fn a_rule_that_no_bucket_names_is_freed_and_its_index_used_again() {
    let (rig, rule, _) = rig();
    assert!(!is_kept(&rig, SECOND, rule));
    assert_eq!(rig.table.rules().count(), 1);
    let third = per_second(30);
    assert_eq!(rig.table.rule_index(3, &third), Some(rule));
    assert_eq!(rig.table.rule(rule), Some((3, third)));
    assert_eq!(rig.table.rule_index(4, &third), Some(rule + 1));
}

#[test]
fn a_rule_in_use_is_not_freed() {
    let (rig, rule, scale) = rig();
    rig.table.reclaim_rules(SECOND, |_| false);
    assert_eq!(rig.table.rule(rule), Some((OTHER, scale)));
}

#[test]
fn a_bucket_in_debt_keeps_its_rule_until_it_is_full() {
    let (rig, rule, scale) = rig();
    charge(&rig, rule, &scale, 7, 4, 0);
    assert!(is_kept(&rig, SECOND, rule));
    assert!(is_kept(&rig, 5 * SECOND - 1, rule));
    assert_eq!(rig.table.live(SECOND), 1);
    assert!(!is_kept(&rig, 5 * SECOND, rule));
    // Another rule at its index finds nothing there.
    let third = per_second(30);
    let rule = rig.table.rule_index(OTHER, &third).unwrap();
    assert_eq!(rig.table.read(Key { fingerprint: 7, rule }, &third, SECOND), 0);
    assert_eq!(rig.table.live(SECOND), 0);
    charge(&rig, rule, &third, 7, 3, 0);
    assert_eq!(rig.all_used(SECOND).iter().map(|(_, used)| *used).collect::<Vec<_>>(), [3]);
}

/// However far from home it lies.
#[test]
fn the_last_of_many_buckets_keeps_its_rule() {
    let (rig, rule, scale) = rig();
    (0..200).for_each(|n| charge(&rig, rule, &scale, at_home(69, 70, n % 8), 1 + n % 3, 0));
    assert!(is_kept(&rig, 2 * SECOND, rule));
    assert!(rig.table.live(2 * SECOND) > 4, "also in the second line");
    assert!(!is_kept(&rig, 2000 * SECOND, rule));
}

#[test]
fn hits_that_peers_have_yet_to_hear_of_keep_their_rule() {
    let (rig, rule, scale) = rig();
    rig.table.exchange(SECOND);
    charge(&rig, rule, &scale, 7, 1, 1);
    assert!(is_kept(&rig, 10 * SECOND, rule), "full, but not reported");
    assert!(!is_kept(&rig, 20 * SECOND, rule), "nobody reports any more");
    assert_eq!(rig.table.unreported.get(), 1);
}

/// A process that cannot say which rules it uses.
#[test]
fn rules_that_are_pinned_stay() {
    let (rig, rule, scale) = rig();
    let half_written = rig.table.add_rule(3, &scale, true, |_| true).unwrap();
    rig.table.region.rule(half_written).unwrap().set_ready(false);
    rig.table.pin_rules();
    assert!(is_kept(&rig, SECOND, rule));
    assert_eq!(rig.table.rule_index(4, &scale), Some(half_written + 1), "perhaps at this moment");
}

/// The same index may mean another rule there.
#[test]
fn a_copy_gives_rules_indexes_of_its_own() {
    let (rig, rule, scale) = rig();
    charge(&rig, rule, &scale, at_home(5, 70, 1), 4, 0);
    let copy = Rig::new(100, 10);
    let first = per_second(5);
    assert_eq!(copy.table.rule_index(9, &first), Some(rule));
    copy.table.copy_from(&rig.table, SECOND);
    assert_eq!(copy.table.rules().count(), 3);
    let used: Vec<i64> = copy.all_used(SECOND).iter().map(|(_, used)| *used).collect();
    assert_eq!(used, [4]);
    assert_eq!(copy.table.rule(rule + 1), Some((OTHER, scale)));
}
