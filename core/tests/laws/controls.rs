//! Negative controls: wrong arithmetic, and domains that combine their rules wrongly, must break
//! the laws.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::model::{Bucket, Limit, MUTATIONS, Model, Mutation};
use crate::{
    Call, MAX_STREAM_NS, due, law_conforming, law_debt, law_full, law_order, law_window, limits,
    streams,
};

/// Returns true if the law ever fails for this arithmetic.
fn detects(law: Law, mutation: Mutation) -> bool {
    ever_fails(&streams(), |(limit, calls)| law(&mut Model::new(limit, mutation), &limit, &calls))
}

/// Returns true if the law fails for some input.
fn ever_fails<S: Strategy>(inputs: &S, law: impl Fn(S::Value) -> Result<(), String>) -> bool {
    let config =
        Config { cases: 200, max_shrink_iters: 0, failure_persistence: None, ..Config::default() };
    let run = TestRunner::new(config).run(inputs, |input| {
        prop_assert_eq!(law(input), Ok(()));
        Ok(())
    });
    run.is_err()
}

type Law = fn(&mut dyn Bucket, &Limit, &[Call]) -> Result<(), String>;

#[test]
fn the_laws_hold_for_exact_arithmetic() {
    for law in [law_window, law_conforming, law_full, law_debt_of_12_and_5] {
        assert!(!detects(law, Mutation::None));
    }
}

#[test]
fn the_laws_detect_every_mutation() {
    for mutation in MUTATIONS {
        let law: Law = match mutation {
            Mutation::NoCap | Mutation::OneMore | Mutation::WholeNanoseconds => law_window,
            Mutation::ChargeRefused | Mutation::Strict => law_conforming,
            Mutation::RefundAbove => law_full,
            Mutation::DebtFloor => law_debt_of_12_and_5,
            Mutation::None => unreachable!("not in the list"),
        };
        assert!(detects(law, mutation), "{mutation:?} was not detected");
    }
}

fn law_debt_of_12_and_5(
    bucket: &mut dyn Bucket,
    limit: &Limit,
    _calls: &[Call],
) -> Result<(), String> {
    if due(limit, 17) < MAX_STREAM_NS { law_debt(bucket, limit, &[12, 5]) } else { Ok(()) }
}

/// A deliberate defect in the way a domain combines its rules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DomainMutation {
    None,
    /// Takes from one rule after another until one refuses, and gives nothing back.
    TakesWithoutGivingBack,
    /// Allows a check if any rule does.
    AnyRule,
}

fn run_mutated(mutation: DomainMutation, limits: &[Limit], calls: &[Call]) -> Vec<bool> {
    let mut rules: Vec<Model> =
        limits.iter().map(|limit| Model::new(*limit, Mutation::None)).collect();
    let most = limits.iter().map(|limit| limit.burst).min().unwrap();
    let answer = |call: &Call| {
        let cost = call.cost.min(most);
        let passes = |rule: &Model| rule.excess(call.now, cost) <= crate::ratio(0);
        match mutation {
            DomainMutation::TakesWithoutGivingBack => {
                rules.iter_mut().all(|rule| rule.check(call.now, cost))
            }
            DomainMutation::AnyRule => rules.iter_mut().any(|rule| rule.check(call.now, cost)),
            DomainMutation::None if rules.iter().all(passes) => {
                rules.iter_mut().for_each(|rule| rule.take(call.now, cost));
                true
            }
            DomainMutation::None => false,
        }
    };
    calls.iter().map(answer).collect()
}

#[test]
fn the_law_of_order_detects_mutated_domains() {
    let order_matters = |mutation| {
        ever_fails(&(streams(), limits(), limits()), |((first, calls), second, third)| {
            let domain = |limits: &[Limit], calls: &[Call]| run_mutated(mutation, limits, calls);
            law_order(domain, [first, second, third], &calls)
        })
    };
    assert!(!order_matters(DomainMutation::None));
    assert!(order_matters(DomainMutation::TakesWithoutGivingBack));
    assert!(order_matters(DomainMutation::AnyRule));
}
