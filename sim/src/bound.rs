//! The bound of docs/simulation.md: how many units beyond burst and rate a cluster may admit.

use dthrottle::internals::cluster::rounded_slack;

use crate::measure::Meter;
use crate::outcome::Outcome;
use crate::scenario::{Fault, Scenario};
use crate::{MS, Ns, SEC};

/// The longest time that a report that is due waits.
const TICK: Ns = 10 * MS;
const SHORTEST_PERIOD: Ns = 5 * MS;
/// Requests added because the formula has fractions of requests.
const ROUNDING: f64 = 3.0;

/// Returns the longest time between two reports of a tag.
pub fn rule_period(scenario: &Scenario) -> Ns {
    (scenario.limit.fill() / 10).clamp(SHORTEST_PERIOD, scenario.period.max(SHORTEST_PERIOD))
}

/// Returns how far a node may go beyond the limit, as a time (tau in the document).
pub fn tolerance(scenario: &Scenario) -> Ns {
    let slack = rounded_slack(2 * scenario.network.longest_delay());
    scenario.tolerance.unwrap_or(rule_period(scenario) + slack)
}

/// Returns the longest time that a hit of a saturated tag stayed unknown to other nodes (W in the
/// document). With losses, this includes the repair of the report.
pub fn unknown(scenario: &Scenario, outcome: &Outcome) -> Ns {
    TICK + scenario.network.longest_delay().max(outcome.slowest)
}

/// Returns the units that faults add to the bound.
pub fn faults(scenario: &Scenario) -> f64 {
    let (rate, burst) = (scenario.limit.rate as f64, scenario.limit.burst as f64);
    let tokens = |time: Ns| rate * time as f64 / SEC as f64;
    let each = scenario.faults.iter().map(|fault| match fault {
        Fault::Cut { at, until, sides } => {
            let sides = f64::from(*sides.iter().max().unwrap_or(&0));
            sides * (burst + tokens(until - at))
        }
        Fault::Restart { .. } => burst,
        Fault::Jump { by, .. } => tokens(*by),
    });
    let fastest = scenario.drift_ppm.iter().copied().max().unwrap_or(0).max(0);
    each.sum::<f64>() + tokens(scenario.last()) * fastest as f64 / 1e6
}

/// Returns the most units that a tag may get beyond burst and rate, in any window.
pub fn excess(scenario: &Scenario, outcome: &Outcome, tag: &Meter) -> f64 {
    let unknown = unknown(scenario, outcome);
    formula(scenario, unknown, tag.peak_demand(unknown))
}

/// The formula of the bound, if at most `demand` units are requested while hits stay unknown.
fn formula(scenario: &Scenario, unknown: Ns, demand: u64) -> f64 {
    let (rate, burst) = (scenario.limit.rate as f64, scenario.limit.burst as f64);
    let tokens = |time: Ns| rate * time as f64 / SEC as f64;
    let tau = tokens(tolerance(scenario));
    let others = (scenario.nodes - 1) as f64 * (burst + tau + tokens(unknown));
    tau + (demand as f64).min(others) + ROUNDING * scenario.cost as f64 + faults(scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    const W: Ns = 11 * MS + MS / 4;

    #[test]
    fn the_bound_is_that_of_the_document() {
        let scenario = Scenario::new("bound", 1, 50);
        assert_eq!(rule_period(&scenario), 100 * MS);
        assert_eq!(tolerance(&scenario), 103 * MS);
        assert!((formula(&scenario, W, 12) - (10.3 + 12.0 + 3.0)).abs() < 1e-9);
        let others = 49.0 * (100.0 + 10.3 + 1.125);
        assert!((formula(&scenario, W, 1_000_000) - (10.3 + others + 3.0)).abs() < 1e-9);
    }

    #[test]
    fn faults_increase_the_bound() {
        let mut scenario = Scenario::new("bound", 1, 4);
        let before = formula(&scenario, W, 10);
        scenario.faults = vec![
            Fault::Cut { at: SEC, until: 3 * SEC, sides: vec![0, 1, 2, 0] },
            Fault::Restart { at: SEC, node: 1, down: SEC, graceful: false },
            Fault::Jump { at: SEC, node: 1, by: SEC / 2 },
        ];
        let added = formula(&scenario, W, 10) - before;
        assert!((added - (2.0 * 300.0 + 100.0 + 50.0)).abs() < 1e-9, "{added}");
    }
}
