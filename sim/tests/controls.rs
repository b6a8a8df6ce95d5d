//! Negative controls: without a part of the engine, the property that needs it must be violated.
//! Otherwise the property would prove nothing. Each scenario runs with the part and without it.

use dthrottle_sim::properties::{Property, check};
use dthrottle_sim::random::inspect_after;
use dthrottle_sim::scenario::{ClientKind, Expectations, Fault, Scenario};
use dthrottle_sim::world::run;
use dthrottle_sim::{MS, SEC};

fn broken(scenario: &Scenario) -> Vec<Property> {
    check(scenario, &run(scenario)).iter().map(|violation| violation.property).collect()
}

/// Asserts that the scenario violates nothing, and that it violates these properties when something
/// is left out.
#[track_caller]
fn assert_violates(
    scenario: &Scenario,
    leave_out: impl Fn(&mut Scenario),
    properties: &[Property],
) {
    assert_eq!(broken(scenario), [], "with all parts, seed {}", scenario.seed);
    let mut without = scenario.clone();
    leave_out(&mut without);
    let broken = broken(&without);
    for property in properties {
        assert!(broken.contains(property), "{property:?} is not among {broken:?}");
    }
}

fn minute(seed: u64, nodes: usize) -> Scenario {
    let mut scenario = Scenario::new("control", seed, nodes);
    (scenario.begin, scenario.settled, scenario.end) = (3 * SEC, 6 * SEC, 66 * SEC);
    scenario.expectations.rate = true;
    scenario.load(ClientKind::Greedy, 1, 1000.0)
}

/// A partition into two sides for four seconds.
fn partition(seed: u64) -> Scenario {
    let mut scenario = Scenario::new("control", seed, 4);
    let (at, until) = (4 * SEC, 8 * SEC);
    scenario.faults = vec![Fault::Cut { at, until, sides: vec![0, 1, 0, 1] }];
    inspect_after(&mut scenario, until);
    scenario.expectations.conforming = true;
    scenario.load(ClientKind::Greedy, 1, 1000.0).load(ClientKind::MODEST, 5, 10.0)
}

#[test]
fn without_tolerance_conforming_clients_are_refused() {
    let mut scenario = Scenario::new("control", 1, 8).load(ClientKind::CONFORMING, 10, 1.0);
    scenario.expectations = Expectations { conforming: true, ..Expectations::default() };
    assert_violates(&scenario, |scenario| scenario.tolerance = Some(0), &[Property::Conforming]);
}

#[test]
fn without_repair_losses_increase_the_rate() {
    let mut scenario = minute(2, 4);
    scenario.network.loss = 0.1;
    let without = |scenario: &mut Scenario| scenario.mechanisms.repair = false;
    assert_violates(&scenario, without, &[Property::Rate, Property::Excess]);
}

#[test]
fn without_repair_balances_differ_after_a_partition() {
    let without = |scenario: &mut Scenario| scenario.mechanisms.repair = false;
    assert_violates(&partition(3), without, &[Property::Views]);
}

#[test]
fn without_deduplication_reports_are_charged_twice() {
    let mut scenario = minute(4, 4);
    scenario.network.duplicates = 0.2;
    let without = |scenario: &mut Scenario| scenario.mechanisms.dedupe = false;
    assert_violates(&scenario, without, &[Property::Ledger]);
}

#[test]
fn without_eager_reports_the_excess_exceeds_the_bound() {
    let scenario = minute(5, 8);
    let without = |scenario: &mut Scenario| scenario.mechanisms.eager = false;
    assert_violates(&scenario, without, &[Property::Excess]);
}

#[test]
fn without_forgiving_late_hits_conforming_clients_are_refused_after_a_partition() {
    let without = |scenario: &mut Scenario| scenario.mechanisms.forgive_late_hits = false;
    assert_violates(&partition(6), without, &[Property::Conforming]);
}

/// The bound is tight: with more tolerance than it includes, it is violated.
#[test]
fn more_tolerance_than_the_bound_includes_violates_it() {
    let scenario = Scenario::new("control", 7, 2).load(ClientKind::Blast, 1, 1.0);
    let outcome = run(&Scenario { tolerance: Some(300 * MS), ..scenario.clone() });
    let broken: Vec<Property> =
        check(&scenario, &outcome).iter().map(|violation| violation.property).collect();
    assert!(broken.contains(&Property::Excess), "{broken:?}");
    assert_eq!(self::broken(&scenario), []);
}

#[test]
fn a_partitioned_cluster_violates_formed() {
    let cut = Fault::Cut { at: 0, until: 9 * SEC, sides: vec![0, 1] };
    let scenario = Scenario::new("control", 8, 2).load(ClientKind::Greedy, 1, 300.0);
    assert_violates(&scenario, |scenario| scenario.faults.push(cut.clone()), &[Property::Formed]);
}
