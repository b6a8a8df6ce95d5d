//! A table has room for 4,094 rules at a time, and takes any number of them over time.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real files")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[path = "processes/folder.rs"]
mod folder;

use std::time::Duration;

use dthrottle::{Config, ErrorKind, Rate, Rule, TableConfig, Throttle};

use crate::folder::Folder;

/// More than twice as many as fit into a table at a time.
const RELOADS: u64 = 10_000;
const TABLE_RULES: usize = 4094;
/// The maximum number of rules of one configuration.
const MAX_CONFIG_RULES: usize = 1000;

/// A rule whose units do not return while a test runs.
fn slow(burst: u64) -> Rule {
    let hardly_ever = Duration::from_secs(100 * 365 * 86_400);
    Rule::new(Rate::new(1, hardly_ever)).burst(burst).name("limit")
}

fn config(burst: u64) -> Config {
    let mut config = Config::default();
    config.add_rule(Config::DEFAULT, slow(burst));
    config
}

/// A configuration with `count` rules, all with this burst.
fn many(count: usize, burst: u64) -> Config {
    let mut config = Config::default();
    for i in 0..count {
        config.add_rule(&format!("domain{}", i / 16), slow(burst).name(format!("rule{i}")));
    }
    config
}

fn open(table: &TableConfig, burst: u64) -> Throttle {
    Throttle::builder().table(table.clone()).rule(slow(burst)).build().unwrap()
}

fn balance(throttle: &Throttle, tag: &str) -> i64 {
    throttle.peek(tag).unwrap().balance
}

/// Runs the test with every kind of table. The second argument tells whether the table has a name.
fn each_kind(test: impl Fn(&TableConfig, bool)) {
    let folder = Folder::new();
    test(&TableConfig::private().tags(1000), false);
    test(&TableConfig::anonymous().tags(1000), false);
    test(&TableConfig::named("web").dir(folder.path()).tags(1), true);
}

#[test]
fn a_table_takes_ten_thousand_different_rules_one_after_another() {
    each_kind(|table, is_named| {
        let mut throttle = open(table, 100);
        assert!((0..3).all(|_| throttle.allow("old").unwrap()));
        assert!((0..5).all(|_| throttle.allow("new").unwrap()));
        let mut used = 5;
        for i in 1..=RELOADS {
            throttle = throttle.reload(config(100 + i)).unwrap();
            if i % 200 == 0 {
                // From now on the bucket names another rule.
                used += i64::from(throttle.allow("new").unwrap());
                let found = (balance(&throttle, "old"), balance(&throttle, "new"));
                assert_eq!(found, (97, 100 - used));
            }
        }
        assert_eq!((used, throttle.stats().buckets), (55, 2));
        if is_named {
            assert_eq!(balance(&open(table, 7), "old"), 7, "the balance is cut to the burst");
            assert_eq!(balance(&open(table, 200), "old"), 97);
        }
    });
}

/// No bucket names its rule. Only the handle knows its index.
#[test]
fn a_domain_handle_keeps_its_rule_during_five_thousand_reloads() {
    each_kind(|table, _| {
        let first = open(table, 100);
        let domain = first.domain("default").unwrap();
        let mut throttle = first.reload(config(50)).unwrap();
        drop(first);
        for i in 1..=RELOADS / 2 {
            throttle = throttle.reload(config(1000 + i)).unwrap();
        }
        assert!((0..40).all(|_| domain.allow("tag").unwrap()));
        assert_eq!(balance(&throttle, "tag"), 60, "the bucket is counted under the handle's rule");
        assert_eq!((0..1000).filter(|_| domain.allow("tag").unwrap()).count(), 60);
    });
}

#[test]
fn a_table_with_all_rules_in_use_is_an_error_until_some_are_released() {
    each_kind(|table, _| {
        let first = open(table, 10);
        let reload = |burst: u64, count: usize| first.reload(many(count, burst));
        let mut held: Vec<_> =
            (1..5).map(|burst| reload(burst, MAX_CONFIG_RULES).unwrap()).collect();
        held.push(reload(5, TABLE_RULES - 4 * MAX_CONFIG_RULES - 1).unwrap());
        let error = reload(6, 1).unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Config, Some("table")));
        let message = error.to_string();
        assert!(message.contains("has no room for more rules: all 4094 are in use"), "{message}");
        assert!(message.contains("use fewer rules or another table name"), "{message}");
        assert!(reload(1, MAX_CONFIG_RULES).is_ok(), "rules that exist need no further entry");
        assert!(first.allow("tag").unwrap());
        drop(held.pop());
        let last = reload(6, 94).map_err(|error| error.to_string());
        assert!(last.is_err_and(|why| why.contains("4094")), "93 rules were released");
        let rest = reload(6, 93).unwrap();
        // A bucket that is not full keeps its rule. A full bucket does not.
        let domains = held[0].domains();
        let kept = &domains[domains.len() - 1];
        assert!(kept.allow("tag").unwrap());
        let first_of_all = held.remove(0);
        first_of_all.domains()[1].allow("other").unwrap();
        first_of_all.domains()[1].reset("other").unwrap();
        drop(first_of_all);
        assert!(reload(7, MAX_CONFIG_RULES).is_err());
        // The last domain has 8 rules, each with a bucket.
        assert!(reload(7, MAX_CONFIG_RULES - 8).is_ok());
        drop(rest);
    });
}
