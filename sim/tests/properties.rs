//! Checks all properties for several hundred seeds. `make sim-soak` runs many more.

use dthrottle_sim::MS;
use dthrottle_sim::properties::check;
use dthrottle_sim::random::{FAMILIES, scenario};
use dthrottle_sim::scenario::{ClientKind, Scenario};
use dthrottle_sim::soak::soak;
use dthrottle_sim::world::run;

const SEEDS: u64 = 320;

#[test]
fn all_properties_hold_for_all_seeds() {
    let failures = soak(0..SEEDS, |_| {});
    let list: Vec<String> = failures.iter().map(ToString::to_string).collect();
    let again = "show one with `make sim-one SEED=...`";
    assert!(
        list.is_empty(),
        "{} of {SEEDS} seeds failed; {again}\n{}",
        list.len(),
        list.join("\n")
    );
}

/// Each of many distant nodes admits a few requests before reports of the others arrive. If late
/// reports did not add up, one node would admit nearly everything.
#[test]
fn a_hundred_distant_nodes_keep_the_bound_and_share_the_load() {
    let mut scenario = Scenario::new("distant", 7, 100).load(ClientKind::Greedy, 1, 1000.0);
    scenario.network.delay = (10 * MS, 40 * MS);
    let outcome = run(&scenario);
    let violations: Vec<String> =
        check(&scenario, &outcome).iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "{violations:?}");
    let fairness = outcome.tags[0].1.fairness();
    assert!(fairness > 0.5, "Jain fairness {fairness}");
}

#[test]
fn a_seed_determines_the_whole_run() {
    for seed in 0..FAMILIES {
        let (one, two) = (run(&scenario(seed)), run(&scenario(seed)));
        assert_eq!(one.digest, two.digest, "two runs of seed {seed} differ");
        let other = run(&scenario(seed + FAMILIES));
        assert_ne!(
            one.digest,
            other.digest,
            "runs of seeds {seed} and {} are equal",
            seed + FAMILIES
        );
    }
}

/// Properties of a run without requests would prove nothing.
#[test]
fn every_run_has_requests_refusals_and_reports() {
    for seed in 0..2 * FAMILIES {
        let outcome = run(&scenario(seed));
        let (requests, admitted) = outcome.tags.iter().fold((0, 0), |sum, (_, meter)| {
            let (requests, admitted) = meter.totals();
            (sum.0 + requests, sum.1 + admitted)
        });
        assert!(admitted > 100 && requests > admitted, "seed {seed}: {requests} {admitted}");
        assert!(outcome.ledger_entries > 50, "seed {seed}: {}", outcome.ledger_entries);
        assert!(outcome.conforming.0 > 50, "seed {seed}: {:?}", outcome.conforming);
    }
}
