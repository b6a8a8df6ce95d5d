//! Random scenarios: the seed's remainder selects a family, and everything else is random.

use rand::RngExt;

use crate::measure::Limit;
use crate::network::{Bursts, Conditions};
use crate::scenario::{ClientKind, Expectations, Fault, Inspection, Load, Scenario};
use crate::{MS, Ns, Random, SEC, random};

/// The number of families. This many consecutive seeds include all of them.
pub const FAMILIES: u64 = 10;

/// Returns the scenario of a seed.
pub fn scenario(seed: u64) -> Scenario {
    let mut random = random(seed, 0);
    let random = &mut random;
    match seed % FAMILIES {
        0 => calm(seed, random),
        1 => adversaries(seed, random),
        2 => losses(seed, random),
        3 => disorder(seed, random),
        4 => partition(seed, random),
        5 => restarts(seed, random),
        6 => clocks(seed, random),
        7 => long_run(seed, random),
        8 => large_units(seed, random),
        _ => everything(seed, random),
    }
}

fn base(name: &str, seed: u64, random: &mut Random) -> Scenario {
    let nodes = random.random_range(2..=8);
    let mut scenario = Scenario::new(name, seed, nodes);
    let rate = [20, 50, 100, 200, 333, 1000][random.random_range(0..6)];
    // Buckets fill within 0.1 to 3 seconds.
    let burst = rate * random.random_range(1..=30) / 10;
    scenario.limit = Limit { rate, burst: burst.max(5) };
    scenario.network.delay = (MS / 10, random.random_range(MS / 5..=5 * MS));
    scenario.network.jitter = random.random_range(0..=2 * MS);
    scenario.multicast = random.random_bool(0.2);
    scenario.end = 10 * SEC;
    scenario
}

fn overload(scenario: &Scenario, random: &mut Random) -> f64 {
    scenario.limit.rate as f64 * random.random_range(2.0..12.0)
}

/// No faults, and clients of several kinds.
fn calm(seed: u64, random: &mut Random) -> Scenario {
    let mut scenario = base("calm", seed, random);
    let demand = overload(&scenario, random);
    let total = scenario.limit.rate as f64 * 3.0;
    scenario.expectations = Expectations { conforming: true, ..Expectations::default() };
    let exponent = random.random_range(0.6..1.3);
    scenario
        .load(ClientKind::Greedy, 1, demand)
        .load(ClientKind::CONFORMING, random.random_range(1..6), 1.0)
        .load(ClientKind::Zipf { exponent }, random.random_range(5..300), total)
}

/// Clients that exploit how the exchange works.
fn adversaries(seed: u64, random: &mut Random) -> Scenario {
    let mut scenario = base("adversaries", seed, random);
    scenario.expectations.conforming = true;
    let demand = overload(&scenario, random);
    scenario
        .load(ClientKind::Hopper, random.random_range(1..3), demand)
        .load(ClientKind::Trickle, random.random_range(1..4), 1.0)
        .load(ClientKind::Blast, 1, 1.0)
        .load(ClientKind::CONFORMING, 2, 1.0)
}

/// Datagrams are lost, independently or in bursts.
fn losses(seed: u64, random: &mut Random) -> Scenario {
    let mut scenario = base("losses", seed, random);
    // With losses, nodes need longer to find each other.
    (scenario.begin, scenario.settled, scenario.end) = (8 * SEC, 10 * SEC, 16 * SEC);
    scenario.network.loss = random.random_range(0.0..0.3);
    if random.random_bool(0.5) {
        let every = random.random_range(200 * MS..=2 * SEC);
        let longest = random.random_range(10 * MS..=300 * MS);
        scenario.network.bursts = Some(Bursts { every, longest });
    }
    let demand = overload(&scenario, random);
    scenario.load(ClientKind::Greedy, 2, demand).load(ClientKind::Trickle, 1, 1.0).load(
        ClientKind::CONFORMING,
        2,
        1.0,
    )
}

/// Datagrams are delayed, duplicated and reordered, but not lost.
fn disorder(seed: u64, random: &mut Random) -> Scenario {
    let mut scenario = base("disorder", seed, random);
    let slowest = random.random_range(5 * MS..=40 * MS);
    scenario.network = Conditions {
        delay: (slowest / 4, slowest),
        jitter: random.random_range(0..=10 * MS),
        duplicates: random.random_range(0.0..0.5),
        delayed: (random.random_range(0.0..0.2), random.random_range(0..=50 * MS)),
        ..Conditions::default()
    };
    let demand = overload(&scenario, random);
    scenario.load(ClientKind::Greedy, 2, demand).load(ClientKind::Hopper, 1, demand).load(
        ClientKind::CONFORMING,
        2,
        1.0,
    )
}

/// The network is partitioned and heals.
fn partition(seed: u64, random: &mut Random) -> Scenario {
    let mut scenario = base("partition", seed, random);
    let sides = random.random_range(2..=scenario.nodes.min(4)) as u8;
    let at = 4 * SEC + random.random_range(0..SEC);
    let heal = at + random.random_range(200 * MS..=8 * SEC);
    let sides = (0..scenario.nodes).map(|node| (node % usize::from(sides)) as u8).collect();
    scenario.faults = vec![Fault::Cut { at, until: heal, sides }];
    if random.random_bool(0.3) {
        scenario.network.loss = random.random_range(0.0..0.05);
    }
    // Enough demand to saturate every side, even one with a single node.
    let demand = overload(&scenario, random) * scenario.nodes as f64;
    inspect_after(&mut scenario, heal);
    // A client far below its limit is not affected by the partition or by what follows.
    scenario.expectations.conforming = !scenario.network.loses();
    let mut scenario =
        scenario.load(ClientKind::Greedy, 1, demand).load(ClientKind::MODEST, 2, 1.0);
    // In half of the scenarios there are no requests any more when the network heals.
    let end = random.random_bool(0.5).then(|| at + (heal - at) * 3 / 4);
    scenario.loads.push(Load { kind: ClientKind::Greedy, tags: 1, demand, end });
    scenario.loads.push(Load { kind: ClientKind::MODEST, tags: 2, demand: 1.0, end: Some(heal) });
    if end.is_some() {
        scenario.loads.iter_mut().for_each(|load| load.end = end);
    }
    scenario
}

/// Adds inspections for the times at which all balances must be equal again. The clients have ended
/// by then.
pub fn inspect_after(scenario: &mut Scenario, heal: Ns) {
    let full = scenario.limit.fill();
    scenario.end = heal + 3 * SEC / 2;
    scenario.inspections = vec![
        Inspection { at: heal + 2 * SEC, saturated: true },
        Inspection { at: heal + full.max(2 * SEC), saturated: false },
    ];
}

/// Nodes stop and start again with empty tables.
fn restarts(seed: u64, random: &mut Random) -> Scenario {
    let mut scenario = base("restarts", seed, random);
    for _ in 0..random.random_range(1..=3) {
        let node = random.random_range(0..scenario.nodes);
        let after = scenario.faults.len() as Ns * 3 * SEC;
        scenario.faults.push(Fault::Restart {
            at: 3 * SEC + after + random.random_range(0..SEC),
            node,
            down: random.random_range(MS..=SEC),
            graceful: random.random_bool(0.5),
        });
    }
    scenario.end = 13 * SEC;
    scenario.inspections = vec![Inspection { at: 14 * SEC, saturated: true }];
    let demand = overload(&scenario, random);
    scenario.load(ClientKind::Greedy, 2, demand).load(ClientKind::Hopper, 1, demand).load(
        ClientKind::CONFORMING,
        2,
        1.0,
    )
}

/// Clocks run fast or slow, and jump ahead.
fn clocks(seed: u64, random: &mut Random) -> Scenario {
    let mut scenario = base("clocks", seed, random);
    scenario.drift_ppm = (0..scenario.nodes).map(|_| random.random_range(-300..=300)).collect();
    for _ in 0..random.random_range(0..=2) {
        scenario.faults.push(Fault::Jump {
            at: random.random_range(3 * SEC..9 * SEC),
            node: random.random_range(0..scenario.nodes),
            by: random.random_range(MS..=20 * SEC),
        });
    }
    let demand = overload(&scenario, random);
    scenario.load(ClientKind::Greedy, 2, demand).load(ClientKind::Hopper, 1, demand).load(
        ClientKind::Conforming { share: (0.9, 0.9) },
        2,
        1.0,
    )
}

/// One minute with ten times the rate, sometimes with losses.
fn long_run(seed: u64, random: &mut Random) -> Scenario {
    let mut scenario = base("long run", seed, random);
    scenario.nodes = random.random_range(2..=4);
    scenario.limit = Limit { rate: 100, burst: random.random_range(20..=200) };
    scenario.network.loss = if random.random_bool(0.5) { 0.1 } else { 0.0 };
    scenario.network.duplicates = random.random_range(0.0..0.1);
    (scenario.settled, scenario.end) = (6 * SEC, 66 * SEC);
    scenario.expectations = Expectations { rate: true, conforming: !scenario.network.loses() };
    scenario.load(ClientKind::Greedy, 1, 1000.0).load(ClientKind::CONFORMING, 1, 1.0)
}

/// Costs in bytes instead of requests: more units than a slot can count one by one.
fn large_units(seed: u64, random: &mut Random) -> Scenario {
    let mut scenario = base("large units", seed, random);
    let rate = 1_000_000 * random.random_range(1..=50);
    let burst = rate * random.random_range(2..=30) / 10;
    scenario.limit = Limit { rate, burst };
    scenario.cost = burst / random.random_range(20..=500);
    scenario.expectations.conforming = true;
    let demand = overload(&scenario, random) / scenario.cost as f64;
    scenario
        .load(ClientKind::Greedy, 1, demand)
        .load(ClientKind::Hopper, 1, demand)
        .load(ClientKind::Trickle, 1, 1.0)
        .load(ClientKind::CONFORMING, 2, 1.0)
}

/// All faults at the same time, including partitions that last longer than reports are stored.
fn everything(seed: u64, random: &mut Random) -> Scenario {
    let mut scenario = base("everything", seed, random);
    (scenario.begin, scenario.settled, scenario.end) = (4 * SEC, 6 * SEC, 24 * SEC);
    scenario.network.loss = random.random_range(0.0..0.1);
    scenario.network.duplicates = random.random_range(0.0..0.2);
    scenario.network.delayed = (random.random_range(0.0..0.1), random.random_range(0..=30 * MS));
    scenario.drift_ppm = (0..scenario.nodes).map(|_| random.random_range(-100..=100)).collect();
    let at = random.random_range(5 * SEC..7 * SEC);
    let until = at + random.random_range(SEC..=17 * SEC);
    let sides = (0..scenario.nodes).map(|node| (node % 2) as u8).collect();
    scenario.faults.push(Fault::Cut { at, until, sides });
    for _ in 0..random.random_range(0..=3) {
        let node = random.random_range(0..scenario.nodes);
        let at = random.random_range(5 * SEC..20 * SEC);
        let (down, graceful) = (random.random_range(MS..=SEC), random.random_bool(0.5));
        let apart = |fault: &Fault| match fault {
            Fault::Restart { at: other, node: same, .. } => {
                *same != node || at.abs_diff(*other) > 2 * SEC
            }
            _ => true,
        };
        if scenario.faults.iter().all(apart) {
            scenario.faults.push(Fault::Restart { at, node, down, graceful });
        }
    }
    let node = random.random_range(0..scenario.nodes);
    let by = random.random_range(MS..=2 * SEC);
    scenario.faults.push(Fault::Jump { at: random.random_range(5 * SEC..20 * SEC), node, by });
    let demand = overload(&scenario, random);
    scenario
        .load(ClientKind::Greedy, 1, demand)
        .load(ClientKind::Hopper, 1, demand)
        .load(ClientKind::Trickle, 1, 1.0)
        .load(ClientKind::MODEST, 2, 10.0)
}
