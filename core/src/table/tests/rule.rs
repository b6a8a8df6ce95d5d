//! Buckets that were last counted under another rule.

use super::*;

#[test]
fn a_bucket_keeps_its_balance_when_its_rule_changes() {
    let test = TestTable::new(2, 10);
    let minute = Scale::new(&Rate::new(7, Duration::from_secs(60)), 20);
    let rule = test.table.rule_index(1, &minute).unwrap();
    assert_ne!(rule, test.rule);
    let balance = |now| {
        let key = Key { fingerprint: 7, rule };
        (minute.balance(test.table.read(key, &minute, now), now), 10 - test.used(7, now))
    };
    let charge = |units| {
        let step =
            |tat| BucketUpdate { tat: minute.charge(tat, SECOND, units), hits: 0, answer: () };
        test.table
            .update(Key { fingerprint: 7, rule }, &minute, SECOND, Some(SECOND), step)
            .unwrap();
    };
    test.charge(7, SECOND, 4).unwrap();
    assert_eq!(balance(SECOND), (6, 6));
    charge(2);
    assert_eq!(balance(SECOND), (4, 4), "two processes with different rules charge in turns");
    test.charge(7, SECOND, 1).unwrap();
    assert_eq!(balance(SECOND), (3, 3));
    charge(8);
    assert_eq!(balance(SECOND), (-5, -5), "debts are kept too");
    test.charge(7, SECOND, 2).unwrap();
    assert_eq!(balance(SECOND), (-7, -7));
    assert_eq!(test.table.live(SECOND), 1);
    assert_eq!(balance(60 * SECOND), (20, 10), "a full bucket is full under both rules");
}

/// A listing shows the rule that counted the bucket last.
#[test]
fn a_slot_names_the_rule_that_charged_it_last() {
    let test = TestTable::new(2, 10);
    let other = per_second(20);
    let rule = test.table.rule_index(2, &other).unwrap();
    let named = || {
        let mut rules = Vec::new();
        test.table.each(SECOND, |bucket, _, scale| rules.push((bucket.key.rule, *scale)));
        rules
    };
    test.charge(7, SECOND, 4).unwrap();
    assert_eq!(named(), [(test.rule, test.scale)]);
    let step = |tat| BucketUpdate { tat: other.charge(tat, SECOND, 1), hits: 0, answer: () };
    test.table.update(Key { fingerprint: 7, rule }, &other, SECOND, Some(SECOND), step).unwrap();
    assert_eq!(named(), [(rule, other)]);
    assert_eq!(test.table.rule(rule), Some((2, other)));
    assert_eq!(test.table.rule(test.rule), Some((1, test.scale)));
    let rules: Vec<_> = test.table.rules().collect();
    assert_eq!(rules, [(test.rule, 1, test.scale), (rule, 2, other)]);
}

#[test]
fn a_slot_with_an_invalid_rule_counts_as_full() {
    let test = TestTable::new(2, 10);
    let unknown = Key { rule: 77, ..test.key(7) };
    let step = |_| BucketUpdate { tat: 1 << 50, hits: 0, answer: () };
    test.table.update(unknown, &test.scale, SECOND, Some(SECOND), step).unwrap();
    assert_eq!((test.used(7, SECOND), test.table.live(SECOND)), (0, 0));
    assert_eq!((test.table.rule(77), test.table.rule(u16::MAX)), (None, None));
    test.charge(7, SECOND, 3).unwrap();
    assert_eq!(test.used(7, SECOND), 3);
}

#[test]
#[cfg_attr(miri, ignore = "millions of steps; `rules.rs` fills a shorter list")]
fn a_full_list_of_rules_takes_no_further_rule() {
    let test = TestTable::new(2, 10);
    let most = slot::RULES as u64 - 2;
    for id in 2..=most {
        assert_eq!(test.table.rule_index(id, &test.scale), Some(id as u16));
    }
    assert_eq!(test.table.rule_index(most + 1, &test.scale), None);
    assert_eq!(
        test.table.rule_index(most, &test.scale),
        Some(most as u16),
        "a known rule is found"
    );
    assert_eq!(test.table.rule_index(most, &per_second(20)), None, "a changed rule is a new rule");
    let key = Key { fingerprint: 7, rule: most as u16 };
    let step = |tat| BucketUpdate { tat: test.scale.charge(tat, SECOND, 4), hits: 0, answer: () };
    test.table.update(key, &test.scale, SECOND, Some(SECOND), step).unwrap();
    assert_eq!(test.used(7, SECOND), 4, "the last rule works like any other");
}

/// Pending hits are units, and rules may count different numbers of units as one hit.
#[test]
fn pending_hits_are_converted_to_the_quantum_of_another_rule() {
    let test = TestTable::new(2, 10);
    test.table.set_exchanged(SECOND);
    let coarse = per_second(1 << 20);
    let rule = test.table.rule_index(1, &coarse).unwrap();
    assert_eq!(coarse.quantum(), 16);
    test.charge(7, SECOND, 100).unwrap();
    let key = Key { fingerprint: 7, rule };
    let step = |tat| BucketUpdate { tat, hits: 2, answer: () };
    test.table.update(key, &coarse, SECOND, Some(SECOND), step).unwrap();
    assert_eq!(test.drain(false), [(0, 6 + 2)]);
    test.table.update(key, &coarse, SECOND, Some(SECOND), step).unwrap();
    test.charge(7, SECOND, 1).unwrap();
    assert_eq!(test.drain(false), [(0, 33)]);
}
