//! One node: a throttle with a table and a clock of its own, and the engine that keeps it in step
//! with its peers. The only file that knows how these two are called.

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
/// 10.0.0.1 is the first node.
const FIRST: u32 = 0x0a00_0001;
/// Fingerprints of exchanged tables need so many lines. Memory that is never touched costs nothing.
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

/// Who gets a datagram.
pub enum To {
    /// A node.
    One(usize),
    /// Each of these nodes.
    Each(Receivers),
    /// All that listen to the group.
    Group,
}

/// Many nodes.
pub struct Receivers(Arc<[PeerAddr]>);

impl Receivers {
    /// How many.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Which.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().copied().map(index)
    }
}

/// What comes out of a node.
pub enum Output {
    /// A datagram to send.
    Send(To, Vec<u8>),
    /// It made a report of this number, which is sent next.
    Reported(u64),
    /// Something happened.
    Event(String),
}

/// A node at work. All times are those of its own clock.
pub struct SimNode {
    clock: ManualClock,
    throttle: Throttle,
    engine: Engine,
    /// To look into its own datagrams.
    keys: Keys,
    /// The number of its last report.
    reported: u64,
}

impl SimNode {
    /// Starts a node that knows no peer yet.
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

    /// Tells it where others may be.
    pub fn join(&mut self, now: Ns, peers: &[usize]) {
        self.set(now);
        let peers: Vec<PeerAddr> = peers.iter().copied().map(address).collect();
        self.engine.join(now, &peers);
    }

    /// Lets it say goodbye.
    pub fn leave(&mut self, now: Ns) {
        self.set(now);
        self.engine.leave(now);
    }

    /// Its name in ledgers.
    pub fn origin_id(&self) -> OriginId {
        origin_id(self.engine.origin())
    }

    /// How many peers it knows to be there.
    pub fn peers(&self) -> usize {
        self.engine.peers()
    }

    /// A client asks.
    pub fn allow(&mut self, now: Ns, tag: &[u8], units: u64) -> bool {
        self.set(now);
        self.throttle
            .allow_with(tag, CheckOptions::cost(units))
            .expect("no request costs more than the burst")
    }

    /// Units left in a bucket, below zero in debt.
    pub fn balance(&mut self, now: Ns, tag: &[u8]) -> i64 {
        self.set(now);
        self.throttle.peek(tag).expect("an open throttle").balance
    }

    /// A datagram arrives.
    pub fn datagram(&mut self, now: Ns, from: usize, bytes: &mut [u8]) {
        self.set(now);
        self.engine.handle_datagram(now, address(from), bytes);
    }

    /// Its time has come.
    pub fn timeout(&mut self, now: Ns) {
        self.set(now);
        self.engine.handle_timeout(now);
    }

    /// Hands out what there is, and says when the node's time will come.
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

    /// The number of a report that is sent for the first time, alone or summed up with others.
    fn new_report(&self, datagram: &mut [u8]) -> Option<u64> {
        let (envelope, body) = self.keys.open(datagram).ok()?;
        if envelope.kind != DatagramKind::Report {
            return None;
        }
        let report = Report::parse(body, envelope.flags).ok()?;
        (report.origin.is_none() && report.last > self.reported).then_some(report.last)
    }

    /// What it charged since it was asked last: reports of whom, first and last number.
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

/// What checks are told about the cluster.
fn cluster_config(scenario: &Scenario) -> ClusterConfig {
    let config = ClusterConfig::new(CLUSTER)
        .period(Duration::from_nanos(scenario.period))
        .pacing(scenario.pacing);
    match scenario.tolerance {
        Some(tolerance) => config.tolerance(Duration::from_nanos(tolerance)),
        None => config,
    }
}

/// Sealed or not makes no difference to anything but speed.
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
