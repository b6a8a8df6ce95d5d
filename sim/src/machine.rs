//! The machines on which nodes run. The clock of a machine continues while its node is down.

use crate::clients::Request;
use crate::clock::LocalClock;
use crate::node::SimNode;
use crate::outcome::{Outcome, mix};
use crate::{Ns, SEC};

/// The difference between the starting times of two consecutive machines' clocks.
const CLOCK_STEP: Ns = 977 * SEC;

/// In clusters up to this size, each node has a list of all others.
const ALL_KNOWN: usize = 50;
/// In larger clusters, all nodes are given this many seed nodes.
const SEEDS: usize = 5;

/// A machine with a node, which may be down.
pub(crate) struct Machine {
    pub(crate) node: Option<SimNode>,
    pub(crate) clock: LocalClock,
    /// How often the node has been started.
    pub(crate) starts: u64,
    /// When the node was last started.
    pub(crate) started: Ns,
    /// When the node has to be woken, and when it will be.
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

/// Returns the peers that a node is given: all others, or the seed nodes of a large cluster.
pub(crate) fn first_peers(nodes: usize, me: usize) -> Vec<usize> {
    let step = if nodes <= ALL_KNOWN { 1 } else { nodes / SEEDS };
    (0..nodes).step_by(step).filter(|peer| *peer != me).collect()
}

/// Sends a client's request to the node it chose, or the next one that is up. Returns whether it
/// was allowed.
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
