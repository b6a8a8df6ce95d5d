//! The places of nodes: each has a clock that goes on while the node is down.

use crate::clients::Request;
use crate::clock::LocalClock;
use crate::node::SimNode;
use crate::outcome::{Outcome, mix};
use crate::{Ns, SEC};

/// Clocks do not start at the same time; each node's began so much earlier than the one before.
const CLOCK_STEP: Ns = 977 * SEC;

/// Up to so many nodes have a list of all others.
const ALL_KNOWN: usize = 50;
/// Larger clusters have so many that are known to all.
const SEEDS: usize = 5;

/// A place for a node, which may be down.
pub(crate) struct Machine {
    pub(crate) node: Option<SimNode>,
    pub(crate) clock: LocalClock,
    pub(crate) starts: u64,
    pub(crate) started: Ns,
    /// When the node wants to be woken, and when it will be.
    pub(crate) due: Ns,
    pub(crate) woken: Ns,
}

impl Machine {
    pub(crate) fn new(index: usize, drift_ppm: i64) -> Machine {
        Machine {
            node: None,
            clock: LocalClock::new((index as Ns % 64 + 1) * CLOCK_STEP, drift_ppm),
            starts: 0,
            started: 0,
            due: Ns::MAX,
            woken: Ns::MAX,
        }
    }
}

/// The peers that a node is given: all others, or in a large cluster a few that all are given.
pub(crate) fn first_peers(nodes: usize, me: usize) -> Vec<usize> {
    let step = if nodes <= ALL_KNOWN { 1 } else { nodes / SEEDS };
    (0..nodes).step_by(step).filter(|peer| *peer != me).collect()
}

/// A client's request, at the node it chose or the next one that is up.
pub(crate) fn send_request(
    machines: &mut [Machine],
    outcome: &mut Outcome,
    now: Ns,
    request: Request,
) -> bool {
    let Request { node, tag, units } = request;
    let count = machines.len();
    let up = (0..count).map(|i| (node + i) % count).find(|i| machines[*i].node.is_some());
    let Some(index) = up else { return false };
    let machine = &mut machines[index];
    let local = machine.clock.local(now);
    let Some(node) = &mut machine.node else { return false };
    let allowed = node.allow(local, &tag.to_le_bytes(), units);
    let (kind, meter) = &mut outcome.tags[tag as usize];
    meter.record(now, index, units, allowed);
    if kind.conforms() {
        outcome.conforming.0 += 1;
        outcome.conforming.1 += u64::from(!allowed);
    }
    mix(&mut outcome.digest, now << 1 | u64::from(allowed));
    allowed
}
