//! The properties that every run must have, and the check of a run.

use std::fmt;

use crate::measure::Meter;
use crate::outcome::{Outcome, View};
use crate::scenario::{Fault, Scenario};
use crate::{Ns, SEC, bound};

/// The greatest relative error of the long-run rate.
const RATE_ERROR: f64 = 0.01;
/// Requests added because requests at the ends of the measured span are counted whole.
const RATE_ROUNDING: f64 = 3.0;

/// The time after a partition within which all nodes have all reports.
pub const CONVERGED: Ns = 2 * SEC;

/// A property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Property {
    /// All nodes were members when the clients started.
    Formed,
    /// In every window, the cluster admitted no more than the bound.
    Excess,
    /// The long-run rate is the configured one.
    Rate,
    /// No conforming client was refused.
    Conforming,
    /// Every report was charged at most once.
    Ledger,
    /// If no datagrams are lost, every report arrives quickly.
    Repair,
    /// All nodes have the same balance.
    Views,
}

/// A violated property.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The property.
    pub property: Property,
    /// A description of the violation.
    pub description: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.property, self.description)
    }
}

/// Returns all properties that a run violates.
pub fn check(scenario: &Scenario, outcome: &Outcome) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut violation =
        |property, description| violations.push(Violation { property, description });
    if outcome.fewest_peers + 1 != scenario.nodes {
        let description =
            format!("a node had {} of {} peers", outcome.fewest_peers, scenario.nodes - 1);
        violation(Property::Formed, description);
    }
    for (tag, (kind, meter)) in outcome.tags.iter().enumerate() {
        if let Some(description) = too_much(scenario, outcome, meter) {
            violation(Property::Excess, format!("tag {tag} ({kind:?}): {description}"));
        }
        if scenario.expectations.rate
            && kind.saturates()
            && let Some(description) = wrong_rate(scenario, meter)
        {
            violation(Property::Rate, format!("tag {tag} ({kind:?}): {description}"));
        }
    }
    let (requests, refused) = outcome.conforming;
    if scenario.expectations.conforming && refused > 0 {
        violation(Property::Conforming, format!("{refused} of {requests} refused"));
    }
    if let Some(first) = outcome.ledger_errors.first() {
        let description = format!("{} errors, the first: {first}", outcome.ledger_errors.len());
        violation(Property::Ledger, description);
    }
    if let Some(description) = too_slow(scenario, outcome) {
        violation(Property::Repair, description);
    }
    for view in &outcome.views {
        if let Some(description) = differs(scenario, view) {
            violation(Property::Views, description);
        }
    }
    violations
}

fn too_much(scenario: &Scenario, outcome: &Outcome, meter: &Meter) -> Option<String> {
    let bound = bound::excess(scenario, outcome, meter);
    let (excess, at) = (meter.excess(), seconds(meter.excess_at()));
    (excess > bound).then(|| format!("excess {excess:.1} above {bound:.1} at {at:.3} s"))
}

/// With losses, the time of a repair is random. Without them, repair is needed only after a
/// partition and by starting nodes.
fn too_slow(scenario: &Scenario, outcome: &Outcome) -> Option<String> {
    let jump = |fault: &Fault| matches!(fault, Fault::Jump { .. });
    let repair = if scenario.faults.iter().all(jump) { 0 } else { CONVERGED };
    let allowed = scenario.network.longest_delay() + repair;
    (!scenario.network.loses() && outcome.slowest > allowed)
        .then(|| format!("a report took {:.3} s", seconds(outcome.slowest)))
}

fn wrong_rate(scenario: &Scenario, meter: &Meter) -> Option<String> {
    let units = seconds(scenario.end - scenario.settled) * scenario.limit.rate as f64;
    let error = meter.rate_error();
    let allowed = RATE_ERROR.max(RATE_ROUNDING * scenario.cost as f64 / units);
    (error.abs() > allowed).then(|| format!("rate off by {:+.2} %", error * 100.0))
}

/// Compares the balances of all nodes. There were no requests for a while, so no reports are in
/// flight; what remains is the rounding of times in reports. The true balance is compared as well,
/// because all nodes could be wrong in the same way. A node that is killed loses its pending hits,
/// and a starting node has no buckets, so with restarts balances may be too high.
fn differs(scenario: &Scenario, view: &View) -> Option<String> {
    let (least, most) = (*view.balances.iter().min()?, *view.balances.iter().max()?);
    let rate = scenario.limit.rate as f64;
    let allowed = scenario.cost as f64 + rate * seconds(bound::tolerance(scenario));
    let restarts = scenario.faults.iter().any(|fault| matches!(fault, Fault::Restart { .. }));
    let highest = if restarts { view.truth } else { view.truth.max(most as f64) };
    let apart = highest - view.truth.min(least as f64);
    (apart > allowed).then(|| {
        let (at, tag, truth) = (seconds(view.at), view.tag, view.truth);
        format!("tag {tag} at {at:.3} s: balances {least} to {most}, correct {truth:.1}")
    })
}

fn seconds(ns: Ns) -> f64 {
    ns as f64 / SEC as f64
}
