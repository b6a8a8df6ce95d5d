//! Lost races, and the tolerance for late reports.

use std::sync::Arc;

use super::*;
use crate::{Domain, ManualClock, Rule, Throttle};

fn throttle(first: Rule, second: Rule) -> Throttle {
    let builder = Throttle::builder().rule(first).rule(second);
    builder.clock(ManualClock::new()).build().unwrap()
}

/// A bucket is emptied between peek and commit. The other bucket must get its units back.
#[test]
fn a_lost_race_gives_back_every_unit() {
    let throttle = throttle(Rule::per_second(1).burst(20), Rule::per_second(1).burst(10));
    let check = Check::of_several(&throttle.0, b"tag", CheckOptions::cost(8));
    let peeked = check.peek();
    assert_eq!(peeked.granted, Some(8));
    // Another thread takes units first.
    assert!(throttle.check_with("tag", CheckOptions::cost(3)).unwrap().allowed);
    let decision = check.commit(peeked).decision();
    assert!(!decision.allowed);
    assert_eq!((decision.rule, decision.balance), (Some(1), 7));
    assert_eq!(decision.retry_after, Duration::from_secs(1));
    let after = throttle.peek_with("tag", CheckOptions::cost(7)).unwrap();
    assert!(after.allowed && after.balance == 7);
    assert_eq!(after.reset_after, Duration::from_secs(3), "the other rule got its units back");
}

#[test]
fn a_lost_race_is_charged_like_a_refusal() {
    let first = Rule::per_second(1).burst(20).charge_refused(true);
    let throttle = throttle(first, Rule::per_second(1).burst(10));
    let check = Check::of_several(&throttle.0, b"tag", CheckOptions::cost(8));
    let peeked = check.peek();
    assert!(throttle.check_with("tag", CheckOptions::cost(3)).unwrap().allowed);
    assert!(!check.commit(peeked).allowed());
    assert_eq!(throttle.peek("tag").unwrap().reset_after, Duration::from_secs(11));
}

#[test]
fn a_lost_race_gives_back_a_debt() {
    let throttle = throttle(Rule::per_second(1).burst(20), Rule::per_second(1).burst(10));
    let check = Check::of_several(&throttle.0, b"tag", CheckOptions::cost(30).allow_debt(true));
    let peeked = check.peek();
    assert_eq!(peeked.granted, Some(30));
    throttle.charge_local("tag", 1, Duration::ZERO).unwrap();
    let decision = check.commit(peeked).decision();
    assert_eq!((decision.allowed, decision.retry_after), (false, Duration::from_secs(1)));
    assert_eq!(throttle.peek("tag").unwrap().reset_after, Duration::from_secs(1));
}

#[test]
fn a_debt_beyond_the_greatest_tat_is_clamped() {
    let builder = Throttle::builder().rule(Rule::per_hour(1).burst(3));
    let throttle = builder.clock(ManualClock::new()).build().unwrap();
    let decision =
        throttle.check_with("tag", CheckOptions::cost(1 << 40).allow_debt(true)).unwrap();
    assert_eq!((decision.granted, decision.delay), (1 << 40, Duration::ZERO));
    let stats = throttle.stats();
    assert_eq!((stats.clamped, stats.failed_open), (1, 0));
    assert!(!throttle.check_with("tag", CheckOptions::cost(0)).unwrap().allowed);
}

const SECOND: u64 = 1_000_000_000;

/// An exchanged table, and a rule of one unit per second with a burst of 2 and a tolerance.
struct TestDomain {
    clock: ManualClock,
    throttle: Throttle,
    domain: Domain,
}

impl TestDomain {
    fn new(tolerance_ns: u64, slack: bool) -> TestDomain {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(1000));
        let builder = Throttle::builder().rule(Rule::per_second(1).burst(2));
        let throttle = builder.clock(clock.clone()).build().unwrap();
        let inner = &throttle.0;
        let rules = inner.rules.iter().cloned();
        let rules = rules.map(|rule| ActiveRule { tolerance_ns, slack, ..rule }).collect();
        let (name, hold, host) = (inner.name.clone(), inner.hold.clone(), inner.host.clone());
        let inner = Inner { name, dry_run: false, rules, hold, host, node: None };
        let domain = Domain(Arc::new(inner));
        TestDomain { clock, throttle, domain }
    }

    fn start_exchange(&self) {
        let exchange = self.throttle.exchange();
        exchange.keep_alive(exchange.now());
        // Tolerance applies only if there is slack, however small.
        exchange.set_slack(1);
    }

    /// Number of checks that pass at once.
    fn passes(&self, tag: &str) -> usize {
        (0..100).take_while(|_| self.domain.allow(tag).unwrap()).count()
    }
}

#[test]
fn tolerance_allows_checks_that_would_pass_that_much_later() {
    let test = TestDomain::new(3 * SECOND, false);
    assert_eq!(test.passes("alone"), 2, "the table is not exchanged");
    let exchange = test.throttle.exchange();
    exchange.keep_alive(exchange.now());
    assert_eq!(test.passes("without peers"), 2, "no slack is set");
    test.start_exchange();
    test.throttle.exchange().set_slack(4 * SECOND);
    assert_eq!(test.passes("tag"), 5);
    let refused = test.domain.check("tag").unwrap();
    assert_eq!((refused.balance, refused.remaining), (-3, 0));
    assert_eq!(
        refused.retry_after,
        Duration::from_secs(4),
        "the tolerance does not shorten retry_after"
    );
    assert_eq!(refused.reset_after, Duration::from_secs(5));
    test.clock.advance(Duration::from_secs(1));
    assert_eq!(test.passes("tag"), 1, "the rate is unchanged");
    test.clock.advance(Duration::from_secs(14));
    assert_eq!(test.passes("gone"), 2, "no process has exchanged for 15 seconds");
}

#[test]
fn tolerance_is_exact_to_the_nanosecond() {
    for (tolerance, passes) in [(SECOND, 3), (SECOND - 1, 2)] {
        let test = TestDomain::new(tolerance, false);
        test.start_exchange();
        assert_eq!(test.passes("tag"), passes);
        assert!(test.domain.peek("other").unwrap().allowed);
        test.domain.charge_local("other", 2, Duration::ZERO).unwrap();
        assert_eq!(test.domain.peek("other").unwrap().allowed, passes == 3);
    }
}

#[test]
fn slack_is_added_to_the_tolerance_of_rules_that_use_it() {
    for (slack, passes) in [(true, 5), (false, 3)] {
        let test = TestDomain::new(SECOND, slack);
        test.start_exchange();
        test.throttle.exchange().set_slack(2 * SECOND);
        assert_eq!(test.passes("tag"), passes);
        test.throttle.exchange().set_slack(u64::MAX);
        assert_eq!(test.domain.allow("tag").unwrap(), slack, "the sum saturates");
    }
}

/// The delay is limited, although the units may become available later.
#[test]
fn a_delay_is_at_most_max_delay() {
    let test = TestDomain::new(3 * SECOND, false);
    test.start_exchange();
    let two = CheckOptions::cost(2).max_delay(Duration::from_secs(1));
    let waits: Vec<Duration> = (0..4)
        .map_while(|_| {
            let peek = test.domain.peek_with("tag", two).unwrap();
            let check = test.domain.check_with("tag", two).unwrap();
            assert_eq!((peek.allowed, peek.delay), (check.allowed, check.delay));
            check.allowed.then_some(check.delay)
        })
        .collect();
    assert_eq!(waits, [0, 1, 1].map(Duration::from_secs));
}

#[test]
fn every_rule_has_its_own_tolerance() {
    let test = TestDomain::new(3 * SECOND, false);
    test.start_exchange();
    let inner = &test.domain.0;
    let strict = ActiveRule { tolerance_ns: SECOND, ..inner.rules[0].clone() };
    let fingerprints = crate::table::fingerprint::Fingerprints::new([1, 2], 3);
    let strict = ActiveRule { fingerprints, ..strict };
    let rules = vec![inner.rules[0].clone(), strict];
    let (name, hold, host) = (inner.name.clone(), inner.hold.clone(), inner.host.clone());
    let domain = Domain(Arc::new(Inner { name, dry_run: false, rules, hold, host, node: None }));
    assert_eq!((0..10).filter(|_| domain.allow("tag").unwrap()).count(), 3);
    assert_eq!(domain.check("tag").unwrap().rule, Some(1));
}
