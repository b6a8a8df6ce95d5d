//! Figures over time or over a condition, for plots that need more than the rows of the table.

use serde_json::{Value, json};

use crate::properties::check;
use crate::report::round;
use crate::scenario::{ClientKind, Fault, Scenario};
use crate::world::run;
use crate::{Ns, SEC, parallel};

/// Shares of lost datagrams in percent.
const LOSSES: [u64; 7] = [0, 1, 2, 5, 10, 20, 30];
/// When the partition begins and ends, and when the run ends.
const CUT: (Ns, Ns, Ns) = (7 * SEC, 12 * SEC, 26 * SEC);

/// Computes all series.
pub fn series() -> Value {
    json!({ "losses": losses(), "partition": partition() })
}

/// Ten nodes for a minute, with ten times the rate.
fn lossy(percent: u64, repair: bool) -> Scenario {
    let mut scenario = Scenario::new("losses", 7, 10).load(ClientKind::Greedy, 1, 1000.0);
    (scenario.begin, scenario.settled, scenario.end) = (4 * SEC, 8 * SEC, 68 * SEC);
    scenario.network.loss = percent as f64 / 100.0;
    scenario.mechanisms.repair = repair;
    scenario
}

fn losses() -> Value {
    let errors = |repair: bool| {
        parallel::each(&LOSSES, |percent| {
            round(run(&lossy(*percent, repair)).tags[0].1.rate_error() * 100.0, 3)
        })
    };
    json!({ "percent": LOSSES, "with_repair": errors(true), "without_repair": errors(false) })
}

/// A partition with samples over time.
fn cut_in_two() -> Scenario {
    let mut scenario = Scenario::new("partition", 7, 10).load(ClientKind::Greedy, 1, 3000.0);
    (scenario.begin, scenario.settled, scenario.end) = (2 * SEC, 4 * SEC, CUT.2);
    let sides = Scenario::sides(10, 2);
    scenario.faults = vec![Fault::Cut { at: CUT.0, until: CUT.1, sides }];
    scenario.sample = Some(SEC / 10);
    scenario
}

fn partition() -> Value {
    let scenario = cut_in_two();
    let outcome = run(&scenario);
    debug_assert!(check(&scenario, &outcome).is_empty());
    let seconds = |at: Ns| round(at as f64 / SEC as f64, 3);
    let samples = &outcome.samples;
    let figures = |figure: &dyn Fn(usize) -> Value| -> Vec<Value> {
        (0..samples.len()).map(figure).collect()
    };
    let balances: Vec<Vec<Value>> =
        (0..scenario.nodes).map(|node| figures(&|i| json!(samples[i].balances[node]))).collect();
    json!({
        "begin": seconds(CUT.0),
        "end": seconds(CUT.1),
        "last": seconds(CUT.2),
        "seconds": figures(&|i| json!(seconds(samples[i].at))),
        "admitted": figures(&|i| json!(samples[i].admitted)),
        "balances": balances,
    })
}
