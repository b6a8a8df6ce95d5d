//! The scenarios of the table, each for several cluster sizes.

use crate::network::{Bursts, Conditions};
use crate::scenario::{ClientKind, Expectations, Fault, Scenario};
use crate::{MS, Ns, SEC};

/// The cluster sizes.
pub const SIZES: [usize; 4] = [2, 10, 50, 200];

/// A change to the plain scenario.
type Variation = fn(Scenario) -> Scenario;

const VARIATIONS: [(&str, Variation); 13] = [
    ("10x overload", |scenario| scenario),
    ("100x overload", |mut scenario| {
        scenario.loads[0].demand *= 10.0;
        scenario
    }),
    ("10x, multicast", |scenario| Scenario { multicast: true, ..scenario }),
    ("10x, paced", |scenario| Scenario { pacing: true, ..scenario }),
    ("loss 10 %", |mut scenario| {
        scenario.network.loss = 0.1;
        scenario.expectations.conforming = false;
        scenario
    }),
    ("loss in bursts", |mut scenario| {
        scenario.network.bursts = Some(Bursts { every: SEC, longest: 200 * MS });
        scenario.expectations.conforming = false;
        scenario
    }),
    ("delay 10 to 40 ms", |mut scenario| {
        scenario.network = Conditions { delay: (10 * MS, 40 * MS), ..scenario.network };
        scenario
    }),
    ("duplicates, disorder", |mut scenario| {
        (scenario.network.duplicates, scenario.network.delayed) = (0.2, (0.2, 30 * MS));
        scenario.expectations.conforming = false;
        scenario
    }),
    ("partition of 5 s", |mut scenario| {
        let sides = Scenario::sides(scenario.nodes, 2);
        let at = scenario.settled + 2 * SEC;
        scenario.faults = vec![Fault::Cut { at, until: at + 5 * SEC, sides }];
        scenario.expectations = Expectations::default();
        scenario
    }),
    ("restarts", |mut scenario| {
        let restart = |i: u64| Fault::Restart {
            at: scenario.settled + i * 3 * SEC,
            node: i as usize % scenario.nodes,
            down: SEC / 2,
            graceful: i % 2 == 1,
        };
        scenario.faults = (0..3).map(restart).collect();
        scenario.expectations = Expectations::default();
        scenario
    }),
    ("clocks drift and jump", |mut scenario| {
        scenario.drift_ppm = (0..scenario.nodes as i64).map(|node| node * 37 % 201 - 100).collect();
        let at = scenario.settled + 3 * SEC;
        scenario.faults = vec![Fault::Jump { at, node: 1, by: SEC }];
        scenario.expectations = Expectations::default();
        scenario
    }),
    ("hopper, trickle, blast", |mut scenario| {
        scenario.loads[0].kind = ClientKind::Hopper;
        scenario.load(ClientKind::Trickle, 2, 1.0).load(ClientKind::Blast, 1, 1.0)
    }),
    ("zipf over 2,000 tags", |scenario| {
        scenario.load(ClientKind::Zipf { exponent: 1.0 }, 2000, 2000.0)
    }),
];

/// Returns all scenarios of the table, by variation and size.
pub fn scenarios() -> Vec<Scenario> {
    let each = VARIATIONS.iter().flat_map(|(name, variation)| {
        SIZES.iter().map(move |nodes| variation(plain(name, *nodes)))
    });
    each.chain([thousand()]).collect()
}

/// One tag with ten times its rate, and some with conforming clients.
fn plain(name: &str, nodes: usize) -> Scenario {
    let mut scenario = Scenario::new(name, 7, nodes);
    scenario.begin = 3 * SEC;
    scenario.settled = 8 * SEC;
    scenario.end = scenario.settled + measured(nodes);
    scenario.expectations = Expectations { rate: true, conforming: true };
    let demand = 10.0 * scenario.limit.rate as f64;
    scenario.load(ClientKind::Greedy, 1, demand).load(ClientKind::CONFORMING, 5, 1.0)
}

/// Large clusters take longer to simulate, and need a shorter span because more is averaged.
fn measured(nodes: usize) -> Ns {
    if nodes > 100 { 20 * SEC } else { 60 * SEC }
}

/// A thousand nodes for ten seconds.
fn thousand() -> Scenario {
    let mut scenario = Scenario::new("1,000 nodes", 7, 1000);
    (scenario.begin, scenario.settled, scenario.end) = (3 * SEC, 5 * SEC, 10 * SEC);
    scenario.period = 500 * MS;
    scenario.load(ClientKind::Greedy, 1, 1000.0)
}
