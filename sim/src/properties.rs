//! The properties: what must hold of every run, and which of them a run broke.

use std::fmt;

use crate::measure::Meter;
use crate::outcome::{Outcome, View};
use crate::scenario::{Fault, Scenario};
use crate::{Ns, SEC, bound};

/// How far the long-run rate may be off.
const RATE_ERROR: f64 = 0.01;
/// Whole requests at both ends of the span in which the rate is measured.
const RATE_ROUNDING: f64 = 3.0;

/// After a partition, everything is known everywhere within this time.
pub const CONVERGED: Ns = 2 * SEC;

/// A property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Property {
    /// All nodes knew each other when clients began.
    Formed,
    /// The cluster admitted no more than the bound, in every window.
    Excess,
    /// The long-run rate is the configured one.
    Rate,
    /// No conforming client was refused.
    Conforming,
    /// Every report was charged at most once.
    Ledger,
    /// Where nothing is lost, no report was under way for long.
    Repair,
    /// All nodes saw the same balance.
    Views,
}

/// A property that did not hold.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Which.
    pub property: Property,
    /// What was seen.
    pub seen: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.property, self.seen)
    }
}

/// All properties that a run broke.
pub fn check(scenario: &Scenario, outcome: &Outcome) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut violation = |property, seen| violations.push(Violation { property, seen });
    if outcome.fewest_peers + 1 != scenario.nodes {
        let seen = format!("a node knew {} of {} others", outcome.fewest_peers, scenario.nodes - 1);
        violation(Property::Formed, seen);
    }
    for (tag, (kind, meter)) in outcome.tags.iter().enumerate() {
        if let Some(seen) = too_much(scenario, outcome, meter) {
            violation(Property::Excess, format!("tag {tag} ({kind:?}): {seen}"));
        }
        if scenario.expectations.rate
            && kind.saturates()
            && let Some(seen) = wrong_rate(scenario, meter)
        {
            violation(Property::Rate, format!("tag {tag} ({kind:?}): {seen}"));
        }
    }
    let (asked, refused) = outcome.conforming;
    if scenario.expectations.conforming && refused > 0 {
        violation(Property::Conforming, format!("{refused} of {asked} refused"));
    }
    if let Some(first) = outcome.ledger_errors.first() {
        let seen = format!("{} faults, the first: {first}", outcome.ledger_errors.len());
        violation(Property::Ledger, seen);
    }
    if let Some(seen) = too_slow(scenario, outcome) {
        violation(Property::Repair, seen);
    }
    for view in &outcome.views {
        if let Some(seen) = differs(scenario, view) {
            violation(Property::Views, seen);
        }
    }
    violations
}

fn too_much(scenario: &Scenario, outcome: &Outcome, meter: &Meter) -> Option<String> {
    let bound = bound::excess(scenario, outcome, meter);
    let (excess, at) = (meter.excess(), seconds(meter.excess_at()));
    (excess > bound).then(|| format!("excess {excess:.1} above {bound:.1} at {at:.3} s"))
}

/// How long a repair takes depends on luck where datagrams get lost; elsewhere it is needed only
/// after a partition, and by nodes that start.
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

/// Views are compared when nobody has asked for a while, so nothing is under way; what is left is
/// what hits may be early or late in a report. All nodes could be wrong alike: what is left in
/// truth counts as one more view. A node that ended without a word takes with it what it had not
/// reported yet, and one that starts forgets: where nodes restart, views may be too friendly.
fn differs(scenario: &Scenario, view: &View) -> Option<String> {
    let (least, most) = (*view.balances.iter().min()?, *view.balances.iter().max()?);
    let rate = scenario.limit.rate as f64;
    let allowed = scenario.cost as f64 + rate * seconds(bound::tolerance(scenario));
    let restarts = scenario.faults.iter().any(|fault| matches!(fault, Fault::Restart { .. }));
    let highest = if restarts { view.truth } else { view.truth.max(most as f64) };
    let apart = highest - view.truth.min(least as f64);
    (apart > allowed).then(|| {
        let (at, tag, truth) = (seconds(view.at), view.tag, view.truth);
        format!("tag {tag} at {at:.3} s: {least} to {most}, in truth {truth:.1}")
    })
}

fn seconds(ns: Ns) -> f64 {
    ns as f64 / SEC as f64
}
