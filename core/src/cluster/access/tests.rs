//! Hits taken out of a table and charged to it, with a manual clock.

use std::time::Duration;

use super::*;
use crate::{Builder, CheckOptions, ManualClock, Rule, TableConfig, Throttle};

const SECOND: u64 = 1_000_000_000;

struct Fixture {
    clock: ManualClock,
    throttle: Throttle,
    exchange: Exchange,
}

impl Fixture {
    /// A rule of one unit per second.
    fn new(burst: u64) -> Fixture {
        Fixture::with(Rule::per_second(1).burst(burst))
    }

    fn with(rule: Rule) -> Fixture {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(1000));
        let table = TableConfig::private().clustered().tags(1);
        let builder = Throttle::builder().rule(rule).table(table).clock(clock.clone());
        let throttle = builder.build().unwrap();
        let exchange = throttle.exchange();
        exchange.keep_alive(exchange.now());
        Fixture { clock, throttle, exchange }
    }

    fn now(&self) -> u64 {
        self.exchange.now()
    }

    fn rule(&self) -> &ExchangeRule {
        &self.exchange.rules()[0]
    }

    fn drain(&self) -> Vec<DrainedEntry> {
        let mut out = Vec::new();
        self.exchange.drain(self.now(), false, |_, _| true, |entry| out.push(entry));
        out.sort_unstable_by_key(|entry| entry.fingerprint);
        out
    }

    /// Takes all hits out of the table and returns them in units.
    fn units(&self) -> u64 {
        self.drain().iter().map(|entry| entry.hits * entry.quantum).sum()
    }

    /// The fingerprint as `drain` returns it: a table stores 54 bits.
    fn fingerprint(&self, tag: &str) -> u64 {
        self.throttle.0.rules[0].key(tag.as_bytes()).fingerprint >> 10 << 10
    }

    fn balance(&self, tag: &str) -> i64 {
        self.throttle.peek(tag).unwrap().balance
    }

    fn charge(&self, tag: &str, units: u64, age: u64, late: bool, saturated: bool) -> ChargeCounts {
        let charge = PeerEntry { fingerprint: self.fingerprint(tag), units, saturated };
        let then = self.now() - age;
        self.exchange.charge(self.rule(), self.now(), then, late, std::iter::once(charge))
    }
}

#[test]
fn admitted_units_are_drained_once() {
    let fixture = Fixture::new(100);
    for _ in 0..5 {
        assert!(fixture.throttle.allow("a").unwrap());
    }
    assert!(fixture.throttle.check_with("a", CheckOptions::cost(3)).unwrap().allowed);
    assert!(fixture.throttle.allow("b").unwrap());
    fixture.throttle.refund("a", 1).unwrap();
    fixture.throttle.charge_local("b", 50, Duration::ZERO).unwrap();
    let entry = |tag: &str, hits, saturated| DrainedEntry {
        rule: fixture.rule().id,
        quantum: 1,
        fingerprint: fixture.fingerprint(tag),
        hits,
        start_ns: fixture.now(),
        saturated,
    };
    let mut expected = [entry("a", 7, false), entry("b", 1, false)];
    expected.sort_unstable_by_key(|entry| entry.fingerprint);
    assert_eq!(fixture.drain(), expected);
    assert_eq!(fixture.drain(), []);
    assert_eq!(fixture.throttle.stats().unreported, 0);
}

#[test]
fn a_cost_above_the_burst_is_reported_in_full() {
    let fixture = Fixture::new(100);
    let options = CheckOptions::cost(250).allow_debt(true);
    assert_eq!(fixture.throttle.check_with("tag", options).unwrap().balance, -150);
    assert!(!fixture.throttle.check_with("tag", options).unwrap().allowed);
    assert_eq!(fixture.units(), 250);
    fixture.throttle.refund("tag", 250).unwrap();
    assert_eq!(fixture.balance("tag"), 100);
}

/// Includes the fast path of a check, after the exchange was gone for 15 seconds.
#[test]
fn hits_are_counted_only_while_the_exchange_is_alive() {
    let fixture = Fixture::new(100);
    fixture.clock.advance(Duration::from_secs(15));
    fixture.throttle.allow("tag").unwrap();
    fixture.throttle.allow("tag").unwrap();
    assert_eq!(fixture.units(), 0);
    fixture.exchange.keep_alive(fixture.now());
    fixture.throttle.allow("tag").unwrap();
    assert_eq!(fixture.units(), 1);
}

/// The bucket never becomes full in between, so at most one hit is lost to rounding.
#[test]
fn large_costs_are_reported_to_within_one_hit() {
    let burst = 10_000_000;
    let fixture = Fixture::with(Rule::per_second(1000).burst(burst));
    let quantum = fixture.rule().quantum();
    assert_eq!(quantum, 153);
    fixture.throttle.charge_local("tag", 2_000_000, Duration::ZERO).unwrap();
    let (mut taken, mut reported, mut number) = (0, 0, 1_u64);
    for _ in 0..3000 {
        number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let cost = 1 + (number >> 40) % 3000;
        let decision = fixture.throttle.check_with("tag", CheckOptions::cost(cost)).unwrap();
        taken += decision.granted;
        match number >> 60 {
            0 => reported += fixture.units(),
            1 if decision.allowed => {
                fixture.throttle.refund("tag", cost / 2).unwrap();
                taken -= cost / 2;
            }
            _ => fixture.clock.advance(Duration::from_millis(number >> 54)),
        }
        fixture.exchange.keep_alive(fixture.now());
    }
    reported += fixture.units();
    assert!(
        taken > 4_000_000 && reported.abs_diff(taken) <= quantum,
        "{taken} taken, {reported} reported"
    );
}

/// Charges of many buckets at the same time must not all be rounded in the same direction.
#[test]
fn small_costs_of_many_tags_at_the_same_time_are_reported_on_average() {
    let fixture = Fixture::with(Rule::per_second(1000).burst(2_000_000));
    let quantum = fixture.rule().quantum();
    assert_eq!(quantum, 31);
    let (mut taken, mut reported) = (0, 0);
    for _ in 0..4 {
        fixture.clock.advance(Duration::from_secs(1));
        fixture.exchange.keep_alive(fixture.now());
        for number in 0..20_000 {
            assert!(fixture.throttle.allow(format!("tag{number}")).unwrap());
            taken += 1;
        }
        reported += fixture.units();
        // The standard error of the last comparison is 2 %.
        assert!(reported.abs_diff(taken) < taken / 5, "{reported} of {taken} were reported");
    }
}

/// The bucket becomes full again many times, so each charge is rounded anew.
#[test]
fn small_costs_are_reported_on_average() {
    let fixture = Fixture::with(Rule::per_second(1_000_000).burst(10_000_000));
    let (mut taken, mut reported, mut number) = (0, 0, 1_u64);
    for _ in 0..100_000 {
        number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let cost = 1 + (number >> 40) % 100;
        taken += fixture.throttle.check_with("tag", CheckOptions::cost(cost)).unwrap().granted;
        fixture.clock.advance(Duration::from_nanos(number >> 46));
        fixture.exchange.keep_alive(fixture.now());
        reported += if number >> 60 == 0 { fixture.units() } else { 0 };
    }
    reported += fixture.units();
    assert!(reported.abs_diff(taken) < taken / 100, "{taken} taken, {reported} reported");
}

#[test]
fn hits_that_do_not_fit_into_a_slot_are_counted_as_unreported() {
    let burst = 1 << 40;
    let fixture = Fixture::new(burst);
    for _ in 0..3 {
        fixture.throttle.charge_local("tag", 0, Duration::ZERO).unwrap();
        assert!(fixture.throttle.check_with("tag", CheckOptions::cost(burst)).unwrap().allowed);
        fixture.throttle.reset("tag").unwrap();
    }
    let quantum = fixture.rule().quantum();
    let (reported, unreported) = (fixture.units(), fixture.throttle.stats().unreported);
    assert_eq!(reported, ((1 << 17) - 1) * quantum);
    assert!((reported + unreported).abs_diff(3 * burst) <= 3 * quantum);
}

#[test]
fn hits_that_are_not_due_stay_in_the_table() {
    let fixture = Fixture::new(10);
    for (tag, cost) in [("a", 2), ("b", 5), ("c", 10)] {
        fixture.throttle.check_with(tag, CheckOptions::cost(cost)).unwrap();
    }
    let mut seen = Vec::new();
    let mut out = Vec::new();
    let due = |rule: &ExchangeRule, level: &PendingBucket| {
        assert_eq!(rule, fixture.rule());
        seen.push((level.hits, level.used));
        level.used >= 1 << 31
    };
    fixture
        .exchange
        .drain(fixture.now(), false, due, |entry| out.push((entry.hits, entry.saturated)));
    seen.sort_unstable();
    out.sort_unstable();
    assert_eq!(seen, [(2, (1 << 32) / 5), (5, 1 << 31), (10, 1 << 32)]);
    assert_eq!(out, [(5, false), (10, true)]);
    assert_eq!(fixture.units(), 2);
}

/// The start of hits is computed from the level, as if all hits of the bucket were this node's.
#[test]
fn drained_hits_have_the_time_of_the_first_one() {
    let fixture = Fixture::new(100);
    let start = |fixture: &Fixture| {
        let [entry] = fixture.drain()[..] else { panic!("one entry") };
        fixture.now() - entry.start_ns
    };
    fixture.throttle.check_with("tag", CheckOptions::cost(20)).unwrap();
    assert_eq!(start(&fixture), 0);
    fixture.throttle.allow("tag").unwrap();
    assert_eq!(start(&fixture), 0, "never in the future, even if the bucket was not full");
    fixture.clock.advance(Duration::from_secs(50));
    fixture.exchange.keep_alive(fixture.now());
    fixture.throttle.allow("tag").unwrap();
    fixture.clock.advance(Duration::from_secs(3));
    assert_eq!(start(&fixture), 3 * SECOND);
    fixture.exchange.keep_alive(fixture.now());
    fixture.throttle.allow("tag").unwrap();
    fixture.clock.advance(Duration::from_secs(60));
    assert_eq!(start(&fixture), 15 * SECOND, "the age is limited");
}

#[test]
fn hits_of_peers_are_charged_at_the_time_when_they_began() {
    let fixture = Fixture::new(100);
    assert_eq!(fixture.charge("tag", 30, 0, false, false), ChargeCounts { charged: 1, skipped: 0 });
    assert_eq!(fixture.balance("tag"), 70);
    fixture.charge("other", 30, 10 * SECOND, false, false);
    assert_eq!(fixture.balance("other"), 80, "ten units have been refilled since");
    fixture.charge("tag", 100, 10 * SECOND, false, false);
    assert_eq!(fixture.balance("tag"), -30, "into debt; the refill counts once");
    assert_eq!(fixture.drain(), [], "hits of peers are not reported again");
}

/// Ten distant nodes admit two units each at the same time. Each report alone would leave a full
/// bucket by the time it arrives.
#[test]
fn hits_of_many_nodes_add_up_even_if_each_report_alone_would_leave_a_full_bucket() {
    let fixture = Fixture::new(20);
    for _ in 0..10 {
        assert_eq!(fixture.charge("tag", 2, 3 * SECOND, false, false).charged, 1);
    }
    assert_eq!(fixture.balance("tag"), 3, "20 units, of which 3 were refilled");
}

#[test]
fn many_entries_are_charged_to_their_tags() {
    let fixture = Fixture::new(1000);
    let tags: Vec<String> = (0..100).map(|n| format!("tag{n}")).collect();
    let charges = tags.iter().zip(1..).map(|(tag, units)| PeerEntry {
        fingerprint: fixture.fingerprint(tag),
        units,
        saturated: false,
    });
    let done =
        fixture.exchange.charge(fixture.rule(), fixture.now(), fixture.now(), false, charges);
    assert_eq!(done, ChargeCounts { charged: 100, skipped: 0 });
    assert!(tags.iter().zip(1..).all(|(tag, units)| fixture.balance(tag) == 1000 - units));
}

#[test]
fn late_hits_are_charged_only_to_saturated_tags() {
    let fixture = Fixture::new(100);
    let skipped = ChargeCounts { charged: 0, skipped: 1 };
    let charged = ChargeCounts { charged: 1, skipped: 0 };
    assert_eq!(fixture.charge("tag", 5, 0, true, false), skipped);
    assert_eq!(fixture.balance("tag"), 100);
    assert_eq!(fixture.charge("tag", 5, 0, true, true), charged, "saturated at the peer");
    fixture.throttle.check_with("tag", CheckOptions::cost(85)).unwrap();
    assert_eq!(fixture.balance("tag"), 10);
    assert_eq!(fixture.charge("tag", 5, 0, true, false), skipped, "a tenth is left");
    let saturated = |tag: &str| {
        fixture.exchange.is_saturated(fixture.rule(), fixture.now(), fixture.fingerprint(tag))
    };
    assert!(!saturated("tag") && !saturated("other"));
    fixture.throttle.allow("tag").unwrap();
    assert!(saturated("tag"));
    assert_eq!(fixture.charge("tag", 5, 0, true, false), charged, "saturated here");
    assert_eq!(fixture.balance("tag"), 4);
}

#[test]
fn raise_level_raises_buckets_and_never_lowers_them() {
    let (fixture, other) = (Fixture::new(16), Fixture::new(16));
    for (tag, units) in [("a", 7), ("b", 8), ("c", 20), ("d", 16)] {
        fixture.throttle.charge_local(tag, units, Duration::ZERO).unwrap();
    }
    let levels = fixture.exchange.bucket_levels(fixture.now(), 10);
    let expected = [("c", 20), ("d", 16), ("b", 8), ("a", 7)].map(|(tag, units)| BucketLevel {
        rule: fixture.rule().id,
        fingerprint: fixture.fingerprint(tag),
        used_16ths: units * 16,
    });
    assert_eq!(levels, expected);
    assert_eq!(fixture.exchange.bucket_levels(fixture.now(), 1), expected[..1]);
    assert_eq!(fixture.exchange.bucket_levels(fixture.now(), 0), []);
    other.throttle.charge_local("b", 12, Duration::ZERO).unwrap();
    for level in [("b", 8), ("c", 20), ("e", 4), ("f", 0)] {
        let fingerprint = other.fingerprint(level.0);
        other.exchange.raise_level(other.rule(), other.now(), fingerprint, level.1 * 16);
    }
    let balances = ["b", "c", "e", "f"].map(|tag| other.balance(tag));
    assert_eq!(balances, [4, -4, 12, 16], "never lowered");
    other.exchange.raise_level(other.rule(), other.now(), 0, u64::MAX);
    assert_eq!(other.drain(), []);
}

/// The buckets belong to another process, whose rules this throttle does not have.
#[test]
fn a_drain_reports_hits_of_rules_that_another_process_uses() {
    let fixture = Fixture::new(10);
    let host = std::sync::Arc::clone(&fixture.throttle.0.host);
    let mut other = Exchange::new(host, &[]);
    fixture.throttle.check_with("tag", CheckOptions::cost(9)).unwrap();
    let mut out = Vec::new();
    other.drain(
        fixture.now(),
        false,
        |_, _| panic!("the rule is unknown"),
        |entry| out.push(entry),
    );
    assert_eq!((out.len(), out[0].rule, out[0].hits), (1, fixture.rule().id, 9));
    assert_eq!(other.bucket_levels(fixture.now(), 9)[0].rule, fixture.rule().id);
    assert!(other.rule(fixture.rule().id).is_none());
    other.refresh_rules();
    other.refresh_rules();
    assert_eq!(other.rules(), fixture.exchange.rules());
    assert_eq!(other.rule(fixture.rule().id).as_deref(), Some(fixture.rule()));
    assert_ne!(
        other.rules_hash(),
        fixture.exchange.rules_hash(),
        "the other exchange has no rules of its own"
    );
}

/// After a rule has changed, its old buckets are reported, but peers' entries are charged by the
/// new rule.
#[test]
fn the_own_rule_is_used_if_two_rules_have_the_same_name() {
    let fixture = Fixture::new(10);
    let table = &fixture.throttle.0.host.table;
    let other = crate::limit::bucket::Scale::new(&crate::Rate::new(2, Duration::from_secs(1)), 5);
    let index = table.rule_index(fixture.rule().id, &other).unwrap();
    let mut exchange = fixture.throttle.exchange();
    exchange.refresh_rules();
    assert_eq!(exchange.rules().len(), 2);
    assert_eq!(exchange.rule(fixture.rule().id).as_deref(), Some(fixture.rule()));
    assert_eq!(exchange.rules()[1].index, index);
    assert_eq!(exchange.rules_hash(), fixture.exchange.rules_hash());
}

#[test]
fn a_found_rule_is_used_only_until_its_index_is_reused() {
    let fixture = Fixture::new(10);
    let other = |burst: u64| {
        let mut config = crate::Config::default();
        config.add_rule(crate::Config::DEFAULT, Rule::per_second(1).name("rule1"));
        config.add_rule("other", Rule::per_second(1).burst(burst).name("other"));
        fixture.throttle.reload(config).unwrap()
    };
    let host = &fixture.throttle.0.host;
    let reclaim = || {
        let (users, table) = (&host.rule_users, &host.table);
        let filler = |id: u64| (id, fixture.rule().scale);
        let rules: Vec<_> = (1..=crate::table::MAX_TABLE_RULES as u64).map(filler).collect();
        users.hold(table, || fixture.now(), &rules).unwrap().is_none()
    };
    let first = other(5);
    let known = *first.exchange().rules().last().unwrap();
    let mut exchange = fixture.throttle.exchange();
    exchange.refresh_rules();
    assert_eq!(exchange.rule(known.id).as_deref(), Some(&known));
    drop(first);
    // The index is not reused while the rule is in use here.
    let in_use = exchange.rule(known.id).unwrap();
    assert!(reclaim());
    assert_eq!(host.table.rule(known.index), Some((known.id, known.scale)));
    drop(in_use);
    assert!(reclaim());
    assert_ne!(host.table.rule(known.index), Some((known.id, known.scale)));
    assert!(exchange.rule(known.id).is_none(), "the rule was removed");
    let second = other(7);
    let rule = exchange.rule(known.id).map(|rule| rule.burst());
    assert_eq!(rule, Some(7), "found in the table without refresh_rules");
    exchange.refresh_rules();
    assert!(!exchange.rules().contains(&known));
    assert!(exchange.rules().iter().any(|rule| rule.id == known.id && rule.burst() == 7));
    drop(second);
}

#[test]
fn rules_hash_differs_if_names_rates_or_bursts_differ() {
    let hash = |rules: Vec<Rule>| {
        let builder = Throttle::builder().clock(ManualClock::new());
        let throttle = rules.into_iter().fold(builder, Builder::rule).build();
        throttle.unwrap().exchange().rules_hash()
    };
    let (a, b) = (Rule::per_second(1).name("a"), Rule::per_second(2).name("b"));
    let both = hash(vec![a.clone(), b.clone()]);
    assert_eq!(both, hash(vec![b.clone(), a.clone()]), "the order does not matter");
    assert_ne!(both, hash(vec![a.clone()]));
    assert_ne!(both, hash(vec![a.clone(), b.clone().burst(7)]));
    assert_ne!(both, hash(vec![a.clone().name("c"), b]));
}

#[test]
fn a_rule_returns_its_rate_burst_and_fill_time() {
    for (rate, seconds, burst) in [(1, 1, 10), (100, 1, 250), (7, 60, 3), (9_999_991, 1, 1)] {
        let rule = Rule::new(crate::Rate::new(rate, Duration::from_secs(seconds))).burst(burst);
        let fixture = Fixture::with(rule);
        let expected = rate as f64 / seconds as f64;
        assert!((fixture.rule().rate() / expected - 1.0).abs() < 1e-9);
        let fill = burst as f64 / expected * 1e9;
        assert!((fixture.rule().fill_ns() as f64 - fill).abs() <= 1.0);
        assert_eq!((fixture.rule().burst(), fixture.rule().quantum()), (burst, 1));
    }
}

#[test]
fn only_a_clustered_table_stores_full_fingerprints() {
    let build = |table| {
        let builder = Throttle::builder().rule(Rule::per_second(1)).table(table);
        builder.clock(ManualClock::new()).build().unwrap()
    };
    assert!(!build(TableConfig::private().tags(1000)).exchange().has_full_fingerprints());
    assert!(
        build(TableConfig::private().tags(1000).clustered()).exchange().has_full_fingerprints()
    );
}
