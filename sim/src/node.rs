//! A simulated node: a throttle with its own table and clock, and its engine. Only this file uses
//! the engine's API.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use dthrottle::config::ClusterConfig;
use dthrottle::internals;
use dthrottle::internals::cluster::wire::{DatagramKind, Keys, Report};
use dthrottle::internals::cluster::{self, Engine, Origin, PeerAddr, Settings};
use dthrottle::{CheckOptions, ManualClock, Rule, TableConfig, Throttle};

use crate::Ns;
use crate::ledger::OriginId;
use crate::scenario::Scenario;

const CLUSTER: &str = "sim";
const PORT: u16 = 7373;
/// The address of the first node: 10.0.0.1.
const FIRST: u32 = 0x0a00_0001;
/// The size at which a table can be exchanged. Memory that is never touched costs nothing.
const TAGS: u64 = 160_000;

fn address(index: usize) -> PeerAddr {
    SocketAddr::from((Ipv4Addr::from(FIRST + index as u32), PORT)).into()
}

fn index(address: PeerAddr) -> usize {
    match address.socket_addr() {
        Some(SocketAddr::V4(address)) => u32::from(*address.ip()).wrapping_sub(FIRST) as usize,
        _ => usize::MAX,
    }
}

/// The receivers of a datagram.
pub enum To {
    /// One node.
    One(usize),
    /// Each of these nodes.
    Each(Receivers),
    /// All nodes in the multicast group.
    Group,
}

/// A list of nodes.
pub struct Receivers(Arc<[PeerAddr]>);

impl Receivers {
    /// Returns the number of nodes.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the indexes of the nodes.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().copied().map(index)
    }
}

/// An output of a node.
pub enum Output {
    /// A datagram to send.
    Send(To, Vec<u8>),
    /// The node made the report with this number, and sends it next.
    Reported(u64),
    /// An event of the engine.
    Event(String),
}

/// A running node. All times are those of its own clock.
pub struct SimNode {
    clock: ManualClock,
    throttle: Throttle,
    engine: Engine,
    /// The keys, to inspect the node's own datagrams.
    keys: Keys,
    /// The number of the node's last report.
    reported: u64,
}

impl SimNode {
    /// Starts a node without peers.
    pub fn start(scenario: &Scenario, me: usize, incarnation: u64, seed: u64, now: Ns) -> SimNode {
        let clock = ManualClock::new();
        clock.advance(Duration::from_nanos(now));
        let throttle = Throttle::builder()
            .rule(Rule::per_second(scenario.limit.rate).burst(scenario.limit.burst))
            .clock(clock.clone())
            .table(TableConfig::private().tags(TAGS))
            .cluster(cluster_config(scenario))
            .build()
            .expect("a rule of a scenario is a rule");
        let mut settings = Settings::new(keys(), address(me));
        settings.period = Duration::from_nanos(scenario.period);
        settings.multicast = scenario.multicast;
        settings.mechanisms = scenario.mechanisms;
        let mut engine =
            Engine::new(settings, internals::exchange(&throttle), seed, incarnation, now);
        engine.record_applied();
        SimNode { clock, throttle, engine, keys: keys(), reported: 0 }
    }

    /// Sets the nodes that may be peers.
    pub fn join(&mut self, now: Ns, peers: &[usize]) {
        self.set(now);
        let peers: Vec<PeerAddr> = peers.iter().copied().map(address).collect();
        self.engine.join(now, &peers);
    }

    /// Makes the node leave the cluster.
    pub fn leave(&mut self, now: Ns) {
        self.set(now);
        self.engine.leave(now);
    }

    /// Returns the node's id in ledgers.
    pub fn origin_id(&self) -> OriginId {
        origin_id(self.engine.origin())
    }

    /// Returns the number of peers that are members.
    pub fn peers(&self) -> usize {
        self.engine.peers()
    }

    /// Checks a request of a client.
    pub fn allow(&mut self, now: Ns, tag: &[u8], units: u64) -> bool {
        self.set(now);
        self.throttle
            .allow_with(tag, CheckOptions::cost(units))
            .expect("no request costs more than the burst")
    }

    /// Returns the units left in a bucket, below zero if it is in debt.
    pub fn balance(&mut self, now: Ns, tag: &[u8]) -> i64 {
        self.set(now);
        self.throttle.peek(tag).expect("an open throttle").balance
    }

    /// Handles a received datagram.
    pub fn datagram(&mut self, now: Ns, from: usize, bytes: &mut [u8]) {
        self.set(now);
        self.engine.handle_datagram(now, address(from), bytes);
    }

    /// Does the work that is due.
    pub fn timeout(&mut self, now: Ns) {
        self.set(now);
        self.engine.handle_timeout(now);
    }

    /// Passes all outputs to `out`. Returns the time of the next timeout.
    pub fn poll(&mut self, mut out: impl FnMut(Output)) -> Ns {
        loop {
            match self.engine.poll() {
                cluster::Output::Transmit(mut transmit) => {
                    if let Some(number) = self.new_report(&mut transmit.bytes) {
                        self.reported = number;
                        out(Output::Reported(number));
                    }
                    out(Output::Send(to(transmit.to), transmit.bytes));
                }
                cluster::Output::Event(event) => out(Output::Event(format!("{event:?}"))),
                cluster::Output::Timeout(at) => return at,
            }
        }
    }

    /// Returns the number of a report that is sent for the first time, alone or merged with others.
    fn new_report(&self, datagram: &mut [u8]) -> Option<u64> {
        let (envelope, body) = self.keys.open(datagram).ok()?;
        if envelope.kind != DatagramKind::Report {
            return None;
        }
        let report = Report::parse(body, envelope.flags).ok()?;
        (report.origin.is_none() && report.last > self.reported).then_some(report.last)
    }

    /// Returns the reports charged since the last call: origin, first and last number.
    pub fn applied(&mut self) -> impl Iterator<Item = (OriginId, u64, u64)> + use<> {
        self.engine
            .take_applied()
            .into_iter()
            .map(|(origin, first, last)| (origin_id(origin), first, last))
    }

    fn set(&mut self, now: Ns) {
        self.clock.set(Duration::from_nanos(now)).expect("a node's time never goes back");
    }
}

/// Returns the cluster configuration for checks.
fn cluster_config(scenario: &Scenario) -> ClusterConfig {
    let config = ClusterConfig::new(CLUSTER)
        .period(Duration::from_nanos(scenario.period))
        .pacing(scenario.pacing);
    match scenario.tolerance {
        Some(tolerance) => config.tolerance(Duration::from_nanos(tolerance)),
        None => config,
    }
}

/// Unsealed, which is faster and makes no other difference.
fn keys() -> Keys {
    Keys::unsealed(CLUSTER)
}

fn to(to: cluster::To) -> To {
    match to {
        cluster::To::One(address) => To::One(index(address)),
        cluster::To::Each(addresses) => To::Each(Receivers(addresses)),
        cluster::To::Group => To::Group,
    }
}

fn origin_id(origin: Origin) -> OriginId {
    OriginId { node: origin.node, incarnation: origin.incarnation }
}
