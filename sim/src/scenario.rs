//! A scenario: nodes, a rule, a network, clients, and faults with their times.

use dthrottle::internals::cluster::Mechanisms;

use crate::measure::Limit;
use crate::network::Conditions;
use crate::{MS, Ns, SEC};

/// Everything that determines a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The name in tables.
    pub name: String,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The number of nodes.
    pub nodes: usize,
    /// The rule of all tags.
    pub limit: Limit,
    /// The cost of one request in units.
    pub cost: u64,
    /// The longest time between two reports of a rule.
    pub period: Ns,
    /// Whether reports are sent to a multicast group instead of to each node.
    pub multicast: bool,
    /// How far a node may go beyond the limit, as a time. `None` uses the engine's default.
    pub tolerance: Option<Ns>,
    /// Whether checks of tags that were refused are paced.
    pub pacing: bool,
    /// Which mechanisms of the exchange are on.
    pub mechanisms: Mechanisms,
    /// The conditions of the network.
    pub network: Conditions,
    /// The drift of each node's clock in millionths. Nodes without a value have exact clocks.
    pub drift_ppm: Vec<i64>,
    /// The clients.
    pub loads: Vec<Load>,
    /// The faults.
    pub faults: Vec<Fault>,
    /// When clients start. The cluster must have formed by then.
    pub begin: Ns,
    /// When rates begin to be measured. The first burst must be over by then.
    pub settled: Ns,
    /// When clients end.
    pub end: Ns,
    /// When the balances of all nodes are compared. The run lasts until the last inspection, if
    /// that is after `end`.
    pub inspections: Vec<Inspection>,
    /// The properties that must hold besides those that always must.
    pub expectations: Expectations,
    /// The interval of samples for plots.
    pub sample: Option<Ns>,
}

/// Properties that hold only in some scenarios.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expectations {
    /// The rate of saturated tags is correct within one percent.
    pub rate: bool,
    /// No conforming client is refused.
    pub conforming: bool,
}

/// Clients of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Their kind.
    pub kind: ClientKind,
    /// The number of tags. Each has its own client, unless one client uses all of them.
    pub tags: u32,
    /// Requests per second: of each tag, or of the one client.
    pub demand: f64,
    /// When these clients end, if that is earlier than the others.
    pub end: Option<Ns>,
}

/// How a client behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClientKind {
    /// Sends requests at random times to random nodes, far more than allowed. Its tag is saturated.
    Greedy,
    /// Sends one stream of requests for all its tags, most of them for the first.
    Zipf {
        /// The weight of tag k is k to the power of minus this.
        exponent: f64,
    },
    /// Never requests more than an exact bucket with a share of rate and burst would allow, but
    /// uses all of it, at random nodes.
    Conforming {
        /// The shares of the rate and of the burst.
        share: (f64, f64),
    },
    /// Uses a few units at all nodes but one, then a whole burst at that one.
    Trickle,
    /// Sends requests to one node until it is refused, then to the next.
    Hopper,
    /// Sometimes requests two bursts at every node at the same time.
    Blast,
}

impl ClientKind {
    /// A client that uses all that is allowed.
    pub const CONFORMING: ClientKind = ClientKind::Conforming { share: (1.0, 1.0) };
    /// A client that stays far below its limit.
    pub const MODEST: ClientKind = ClientKind::Conforming { share: (0.5, 0.5) };

    /// Returns true if the client sends so much that its bucket never becomes full.
    pub fn saturates(self) -> bool {
        matches!(self, ClientKind::Greedy | ClientKind::Hopper)
    }

    /// Returns true if the client stays within its limit.
    pub fn conforms(self) -> bool {
        matches!(self, ClientKind::Conforming { .. })
    }
}

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nodes on different sides cannot reach each other for a while.
    Cut {
        /// When the partition begins.
        at: Ns,
        /// When it ends.
        until: Ns,
        /// The side of each node.
        sides: Vec<u8>,
    },
    /// A node stops and starts again with an empty table.
    Restart {
        /// When the node stops.
        at: Ns,
        /// The node.
        node: usize,
        /// How long it is down.
        down: Ns,
        /// Whether the node leaves the cluster before it stops.
        graceful: bool,
    },
    /// A node's clock jumps ahead.
    Jump {
        /// When the clock jumps.
        at: Ns,
        /// The node.
        node: usize,
        /// How far it jumps.
        by: Ns,
    },
}

/// A comparison of the balances of all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The time.
    pub at: Ns,
    /// Whether saturated tags are compared, or else the other tags without requests for the time in
    /// which a bucket fills.
    pub saturated: bool,
}

impl Scenario {
    /// A cluster without clients and faults, with a rate of 100/s and a burst of 100.
    pub fn new(name: impl Into<String>, seed: u64, nodes: usize) -> Scenario {
        Scenario {
            name: name.into(),
            seed,
            nodes,
            limit: Limit { rate: 100, burst: 100 },
            cost: 1,
            period: 100 * MS,
            multicast: false,
            tolerance: None,
            pacing: false,
            mechanisms: Mechanisms::default(),
            network: Conditions::default(),
            drift_ppm: Vec::new(),
            loads: Vec::new(),
            faults: Vec::new(),
            begin: 2 * SEC,
            settled: 5 * SEC,
            end: 15 * SEC,
            inspections: Vec::new(),
            expectations: Expectations::default(),
            sample: None,
        }
    }

    /// Adds clients.
    #[must_use]
    pub fn load(mut self, kind: ClientKind, tags: u32, demand: f64) -> Scenario {
        self.loads.push(Load { kind, tags, demand, end: None });
        self
    }

    /// Returns the end of the run.
    pub fn last(&self) -> Ns {
        self.inspections.iter().map(|inspection| inspection.at).max().unwrap_or(0).max(self.end)
    }

    /// Assigns nodes to the sides of a partition. Alternating sides would hide nodes that
    /// communicate only with their neighbours, so the sides are mixed.
    pub fn sides(nodes: usize, count: u8) -> Vec<u8> {
        (0..nodes).map(|node| ((node * 7 + node / 3) % usize::from(count)) as u8).collect()
    }
}
