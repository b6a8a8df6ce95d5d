//! A scenario is data: nodes, a rule, a network, who asks how often, and what goes wrong when.

use dthrottle::internals::cluster::Mechanisms;

use crate::measure::Limit;
use crate::network::Conditions;
use crate::{MS, Ns, SEC};

/// Everything that decides a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is called in tables.
    pub name: String,
    /// Decides all that is random.
    pub seed: u64,
    /// How many nodes.
    pub nodes: usize,
    /// The one rule that all tags have.
    pub limit: Limit,
    /// Units of one request.
    pub cost: u64,
    /// How often nodes report.
    pub period: Ns,
    /// Whether reports go to a group instead of each node.
    pub multicast: bool,
    /// How far a node may overdraw; `None`: as the engine sees fit.
    pub tolerance: Option<Ns>,
    /// Whether proven offenders are spread over the nodes.
    pub pacing: bool,
    /// Which mechanisms of the exchange are on.
    pub mechanisms: Mechanisms,
    /// The network.
    pub network: Conditions,
    /// By how many millionths each node's clock is fast; none: all are right.
    pub drift_ppm: Vec<i64>,
    /// Who asks.
    pub loads: Vec<Load>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// When clients begin: the cluster must have formed by then.
    pub begin: Ns,
    /// Rates are measured from then on: the first burst must be over.
    pub settled: Ns,
    /// When clients end.
    pub end: Ns,
    /// When the views of all nodes are compared: of saturated tags and of the others. The run lasts
    /// until the last look, if that is after `end`.
    pub inspections: Vec<Inspection>,
    /// Which properties must hold besides those that always must.
    pub expectations: Expectations,
    /// How often levels and admissions are written down for plots.
    pub sample: Option<Ns>,
}

/// What holds only in runs that are made for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expectations {
    /// The rate of saturated tags is within one percent.
    pub rate: bool,
    /// No conforming client is refused.
    pub conforming: bool,
}

/// Some clients of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// How they behave.
    pub kind: ClientKind,
    /// So many tags; each has a client of its own, except where one load spreads over all.
    pub tags: u32,
    /// Requests a second: of each tag, or of a load that spreads over all.
    pub demand: f64,
    /// They end earlier than the others.
    pub end: Option<Ns>,
}

/// How clients behave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClientKind {
    /// Asks at random times, at any node, far more often than allowed. Its tag is saturated.
    Greedy,
    /// One stream of requests over all its tags, most for the first.
    Zipf {
        /// The weight of tag k is k to the minus this.
        exponent: f64,
    },
    /// Never asks for more than a perfect bucket with a share of rate and burst would give, but
    /// takes all of it, at any node.
    Conforming {
        /// Of the rate, and of the burst.
        share: (f64, f64),
    },
    /// Uses a little at all nodes but one, then takes a whole burst at that one.
    Trickle,
    /// Asks one node until it is refused, then goes to the next.
    Hopper,
    /// Takes two bursts at every node in the same moment, now and then.
    Blast,
}

impl ClientKind {
    /// Takes all that is allowed.
    pub const CONFORMING: ClientKind = ClientKind::Conforming { share: (1.0, 1.0) };
    /// Never comes near its limit.
    pub const MODEST: ClientKind = ClientKind::Conforming { share: (0.5, 0.5) };

    /// Whether its tag is so busy that its bucket never fills up.
    pub fn saturates(self) -> bool {
        matches!(self, ClientKind::Greedy | ClientKind::Hopper)
    }

    /// Whether it keeps to its limit.
    pub fn conforms(self) -> bool {
        matches!(self, ClientKind::Conforming { .. })
    }
}

/// Something goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nodes of different sides cannot reach each other for a while.
    Cut {
        /// From then on.
        at: Ns,
        /// Until then.
        until: Ns,
        /// The side of each node.
        sides: Vec<u8>,
    },
    /// A node ends, forgets everything, and comes back.
    Restart {
        /// When it ends.
        at: Ns,
        /// Which.
        node: usize,
        /// How long it is gone.
        down: Ns,
        /// Whether it says goodbye.
        graceful: bool,
    },
    /// A node's clock jumps ahead.
    Jump {
        /// When.
        at: Ns,
        /// Which.
        node: usize,
        /// How far.
        by: Ns,
    },
}

/// A look at the views of all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// When.
    pub at: Ns,
    /// At the saturated tags, or at the others that nobody has asked about for as long as a bucket
    /// needs to fill.
    pub saturated: bool,
}

impl Scenario {
    /// A calm cluster without clients, at a rate of 100/s and a burst of 100.
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

    /// With more clients.
    #[must_use]
    pub fn load(mut self, kind: ClientKind, tags: u32, demand: f64) -> Scenario {
        self.loads.push(Load { kind, tags, demand, end: None });
        self
    }

    /// When nothing happens any more.
    pub fn last(&self) -> Ns {
        self.inspections.iter().map(|inspection| inspection.at).max().unwrap_or(0).max(self.end)
    }

    /// The sides into which the nodes are cut: alternating ones would hide nodes that listen only
    /// to their neighbours, so they are mixed by a simple rule.
    pub fn sides(nodes: usize, count: u8) -> Vec<u8> {
        (0..nodes).map(|node| ((node * 7 + node / 3) % usize::from(count)) as u8).collect()
    }
}
