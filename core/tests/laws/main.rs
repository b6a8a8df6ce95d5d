//! Laws that hold for every rule and every stream of calls, checked against exact arithmetic.
//!
//! Each law is a function of any `Bucket`, so that the negative controls can show that wrong
//! arithmetic breaks it.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod controls;
mod model;

use std::time::Duration;

use dthrottle::{CheckOptions, Decision, ManualClock, Rate, Rule, Throttle};
use model::{Bucket, Limit, Model, Mutation, ratio};
use num_rational::BigRational;
use proptest::prelude::*;
use proptest::test_runner::Config;

/// The core as a `Bucket`.
struct Core {
    throttle: Throttle,
    clock: ManualClock,
}

impl Core {
    fn new(limit: Limit) -> Core {
        let clock = ManualClock::new();
        let rate = Rate::new(limit.count, Duration::from_nanos(limit.period_ns));
        let rule = Rule::new(rate).burst(limit.burst);
        let throttle = Throttle::builder().rule(rule).clock(clock.clone()).build().unwrap();
        Core { throttle, clock }
    }

    fn at(&self, now: u64) -> &Throttle {
        self.clock.set(Duration::from_nanos(now)).unwrap();
        &self.throttle
    }
}

impl Bucket for Core {
    fn check(&mut self, now: u64, cost: u64) -> bool {
        self.at(now).check_with("tag", CheckOptions::cost(cost)).unwrap().allowed
    }

    fn refund(&mut self, now: u64, units: u64) {
        self.at(now).refund("tag", units).unwrap();
    }

    fn reset(&mut self, now: u64) {
        self.at(now).reset("tag").unwrap();
    }

    fn charge_local(&mut self, now: u64, cost: u64, age: u64) {
        self.at(now).charge_local("tag", cost, Duration::from_nanos(age)).unwrap();
    }

    fn balance(&mut self, now: u64) -> i64 {
        self.at(now).peek_with("tag", CheckOptions::cost(0)).unwrap().balance
    }
}

/// One call in a stream: a check at a time in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Call {
    now: u64,
    cost: u64,
}

/// The longest stream: 4 years, in nanoseconds.
const MAX_STREAM_NS: u64 = 1 << 57;

/// The longest possible tick: a third of a nanosecond, or 2^-17 of the time of a unit.
fn tick(limit: &Limit) -> BigRational {
    let fine = ratio(1) / ratio(3);
    let coarse = limit.time_of(1) / ratio(1 << 17);
    if is_exact(limit) {
        ratio(0)
    } else if fine > coarse {
        fine
    } else {
        coarse
    }
}

/// Returns true if a tick divides the nanosecond, so that nothing is rounded.
fn is_exact(limit: &Limit) -> bool {
    let rate = ratio(limit.count) / ratio(limit.period_ns);
    let fits = ratio(limit.burst) * BigRational::from(rate.denom().clone()) <= ratio(1 << 57);
    *rate.numer() <= 4.into() && fits
}

/// In any window of time, a bucket admits at most the burst plus the rate times the window.
fn law_window(bucket: &mut dyn Bucket, limit: &Limit, calls: &[Call]) -> Result<(), String> {
    let admitted: Vec<Call> =
        calls.iter().copied().filter(|call| bucket.check(call.now, call.cost)).collect();
    for (i, first) in admitted.iter().enumerate() {
        let mut units = 0;
        for last in &admitted[i..] {
            units += last.cost;
            let window = ratio(last.now - first.now) + tick(limit);
            if limit.time_of(units) > limit.time_of(limit.burst) + &window {
                return Err(format!("{units} units from {} to {} ns", first.now, last.now));
            }
        }
    }
    Ok(())
}

/// A check is refused only if admitting it would break the window law.
fn law_conforming(bucket: &mut dyn Bucket, limit: &Limit, calls: &[Call]) -> Result<(), String> {
    let mut exact = Model::new(*limit, Mutation::None);
    for call in calls {
        let passes = bucket.check(call.now, call.cost);
        if !passes && exact.excess(call.now, call.cost) <= ratio(0) {
            return Err(format!("{call:?} was refused"));
        }
        if passes {
            exact.take(call.now, call.cost);
        }
    }
    Ok(())
}

/// A refund or a reset never leaves more than the burst, and a full bucket admits exactly the
/// burst.
fn law_full(bucket: &mut dyn Bucket, limit: &Limit, calls: &[Call]) -> Result<(), String> {
    let mut end = 0;
    for call in calls {
        if bucket.check(call.now, call.cost) {
            bucket.refund(call.now, call.cost + 1);
        }
        end = call.now;
    }
    bucket.refund(end, limit.burst);
    for fill in ["refund", "reset"] {
        if bucket.balance(end) != limit.burst as i64 {
            return Err(format!("{} of {} after {fill}", bucket.balance(end), limit.burst));
        }
        if !bucket.check(end, limit.burst) || bucket.check(end, 1) {
            return Err(format!("not exactly {} pass after {fill}", limit.burst));
        }
        bucket.reset(end);
    }
    Ok(())
}

/// Charges count in full: a bucket in debt admits again when the debt is paid, not before.
fn law_debt(bucket: &mut dyn Bucket, limit: &Limit, charges: &[u64]) -> Result<(), String> {
    let owed: u64 = charges.iter().sum();
    for cost in charges {
        bucket.charge_local(0, *cost, 0);
    }
    let balance = limit.burst as i64 - owed as i64;
    if bucket.balance(0) != balance {
        return Err(format!("{} instead of {balance}", bucket.balance(0)));
    }
    let due = due(limit, owed);
    let early = due.saturating_sub(whole(&tick(limit)) + 1);
    if early < due && owed >= limit.burst && bucket.check(early, 1) {
        return Err(format!("passed at {early}, before {due}"));
    }
    if !bucket.check(due, 1) {
        return Err(format!("refused at {due}"));
    }
    Ok(())
}

/// The time at which one unit passes after `owed` units were charged at time 0.
fn due(limit: &Limit, owed: u64) -> u64 {
    whole(&limit.time_of((owed + 1).saturating_sub(limit.burst)))
}

/// A time in whole nanoseconds, rounded up.
fn whole(time: &BigRational) -> u64 {
    u64::try_from(time.ceil().to_integer()).unwrap_or(u64::MAX)
}

/// Rates that divide the nanosecond and rates that do not, from 1 a year to 10 million a second.
fn limits() -> impl Strategy<Value = Limit> {
    let seconds = prop_oneof![Just(1_u64), Just(60), Just(3600), Just(86_400), Just(31_536_000)];
    let count = prop_oneof![1..=10_u64, 1..=10_000_000_u64, Just(9_999_991), Just(10_000_000)];
    let burst = prop_oneof![1..=20_u64, 1..=100_000_u64];
    (count, seconds, burst).prop_map(|(count, seconds, burst)| Limit {
        count,
        period_ns: seconds * 1_000_000_000,
        burst,
    })
}

/// Streams near the limit: pauses of zero, about one unit, exactly one unit, and long ones.
fn streams() -> impl Strategy<Value = (Limit, Vec<Call>)> {
    (limits(), prop::collection::vec((0..6_u8, 0.0..2.5_f64, 0.0..1.2_f64), 1..60)).prop_map(
        |(limit, seeds)| {
            let unit = limit.period_ns as f64 / limit.count as f64;
            let mut now = 0_u64;
            let calls = seeds.into_iter().map(|(kind, pause, share)| {
                let pause = match kind {
                    0 | 1 => 0.0,
                    2 => unit.ceil(),
                    3 => unit * pause,
                    4 => unit.floor(),
                    _ => unit * pause * limit.burst as f64,
                };
                now += (pause as u64).min(MAX_STREAM_NS / 60);
                let cost = if kind % 2 == 0 { 1 } else { (limit.burst as f64 * share) as u64 };
                Call { now, cost: cost.clamp(1, limit.burst) }
            });
            (limit, calls.collect())
        },
    )
}

/// Numbers of every magnitude from 1 up to `bits` bits.
fn sizes(bits: u32) -> impl Strategy<Value = u64> {
    (1..=bits, any::<u64>()).prop_map(|(bits, random)| (random >> (64 - bits)).max(1))
}

proptest! {
    #![proptest_config(Config { cases: 400, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_bucket_never_admits_more_than_burst_and_rate((limit, calls) in streams()) {
        prop_assert_eq!(law_window(&mut Core::new(limit), &limit, &calls), Ok(()));
    }

    #[test]
    fn a_bucket_never_refuses_a_conforming_stream((limit, calls) in streams()) {
        prop_assert_eq!(law_conforming(&mut Core::new(limit), &limit, &calls), Ok(()));
    }

    #[test]
    fn a_bucket_never_fills_above_the_burst((limit, calls) in streams()) {
        prop_assert_eq!(law_full(&mut Core::new(limit), &limit, &calls), Ok(()));
    }

    #[test]
    fn a_bucket_pays_every_debt(limit in limits(), charges in prop::collection::vec(1..500_u64, 1..5)) {
        prop_assume!(due(&limit, charges.iter().sum()) < MAX_STREAM_NS);
        prop_assert_eq!(law_debt(&mut Core::new(limit), &limit, &charges), Ok(()));
    }

    #[test]
    fn a_bucket_agrees_with_exact_arithmetic((limit, calls) in streams()) {
        prop_assume!(is_exact(&limit));
        let (mut core, mut exact) = (Core::new(limit), Model::new(limit, Mutation::None));
        for call in calls {
            prop_assert_eq!(core.check(call.now, call.cost), exact.check(call.now, call.cost));
            prop_assert_eq!(core.balance(call.now), exact.balance(call.now));
        }
    }

    #[test]
    fn the_order_of_rules_does_not_matter(
        (first, calls) in streams(), second in limits(), third in limits()
    ) {
        prop_assert_eq!(law_order(run_domain, [first, second, third], &calls), Ok(()));
    }

    #[test]
    fn a_domain_is_as_strict_as_its_strictest_rule((first, calls) in streams(), second in limits()) {
        for limit in [first, second] {
            let throttle = domain(&[first, second]);
            let mut both = Core { throttle: throttle.0, clock: throttle.1 };
            let most = first.burst.min(second.burst);
            let calls: Vec<Call> =
                calls.iter().map(|call| Call { cost: call.cost.min(most), ..*call }).collect();
            prop_assert_eq!(law_window(&mut both, &limit, &calls), Ok(()));
        }
    }

    #[test]
    fn no_input_overflows(
        count in sizes(60), period in sizes(61), burst in sizes(40),
        calls in prop::collection::vec((sizes(64), sizes(64), sizes(64), any::<bool>()), 1..20)
    ) {
        prop_assume!(count <= period);
        let rate = Rate::new(count, Duration::from_nanos(period));
        let clock = ManualClock::new();
        let rule = Rule::new(rate).burst(burst).charge_refused(count.is_multiple_of(2));
        let throttle = Throttle::builder().rule(rule).clock(clock.clone()).build().unwrap();
        for (step, cost, wait, partial) in calls {
            clock.advance(Duration::from_nanos(step));
            let cost = if partial { cost } else { cost.min(burst) };
            let options = CheckOptions::cost(cost).max_delay(Duration::from_nanos(wait)).partial(partial);
            let decision = throttle.check_with("tag", options).unwrap();
            let debt = throttle.check_with("tag", options.allow_debt(true)).unwrap();
            prop_assert!(debt.granted <= cost && debt.delay.as_nanos() <= u128::from(wait));
            prop_assert!(decision.granted <= cost);
            prop_assert!(decision.remaining <= burst);
            throttle.charge_local("tag", cost, Duration::from_nanos(wait)).unwrap();
            throttle.peek("tag").unwrap();
            throttle.refund("tag", wait).unwrap();
        }
    }
}

/// The order of the rules in a domain does not matter.
fn law_order<A: PartialEq>(
    domain: impl Fn(&[Limit], &[Call]) -> Vec<A>,
    [first, second, third]: [Limit; 3],
    calls: &[Call],
) -> Result<(), String> {
    let answers = domain(&[first, second, third], calls);
    for order in [[third, first, second], [second, third, first], [third, second, first]] {
        if domain(&order, calls) != answers {
            return Err(format!("{order:?} answers differently"));
        }
    }
    Ok(())
}

fn domain(limits: &[Limit]) -> (Throttle, ManualClock) {
    let clock = ManualClock::new();
    let mut builder = Throttle::builder().clock(clock.clone());
    for limit in limits {
        let rate = Rate::new(limit.count, Duration::from_nanos(limit.period_ns));
        builder = builder.rule(Rule::new(rate).burst(limit.burst));
    }
    (builder.build().unwrap(), clock)
}

/// All fields of the decisions that do not depend on the order of the rules.
fn run_domain(limits: &[Limit], calls: &[Call]) -> Vec<Decision> {
    let (throttle, clock) = domain(limits);
    let most = limits.iter().map(|limit| limit.burst).min().unwrap();
    let answer = |call: &Call| {
        clock.set(Duration::from_nanos(call.now)).unwrap();
        let options = CheckOptions::cost(call.cost.min(most)).partial(call.cost.is_multiple_of(3));
        let mut decision = throttle.check_with("tag", options).unwrap();
        (decision.rule, decision.deciding) = (None, None);
        decision
    };
    calls.iter().map(answer).collect()
}
