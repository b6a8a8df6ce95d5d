//! A few engines on a network in memory, in virtual time. The tests can inspect every datagram.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use dthrottle::internals;
use dthrottle::internals::cluster::wire::Keys;
use dthrottle::internals::cluster::{Engine, Event, Output, PeerAddr, Settings, To};
use dthrottle::{ClusterConfig, ManualClock, Reports, Rule, TableConfig, Throttle};

pub(crate) const MILLI: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;
/// The default one-way delay.
pub(crate) const DELAY: u64 = MILLI;

pub(crate) struct TestNode {
    pub(crate) throttle: Throttle,
    pub(crate) engine: Engine,
    pub(crate) events: Vec<Event>,
    pub(crate) next_timeout: u64,
    pub(crate) clock: ManualClock,
    pub(crate) address: PeerAddr,
}

#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) from: PeerAddr,
    pub(crate) to: PeerAddr,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) struct Net {
    pub(crate) nodes: Vec<TestNode>,
    pub(crate) now: u64,
    /// Datagrams in flight, by arrival time and order of sending.
    in_flight: BTreeMap<(u64, u64), Datagram>,
    count: u64,
    /// All datagrams sent so far.
    pub(crate) sent: Vec<Datagram>,
    /// Returns true for datagrams that are lost.
    pub(crate) lose: Box<dyn FnMut(&Datagram) -> bool>,
    /// How many times each datagram arrives.
    pub(crate) copies: u64,
    pub(crate) address: fn(usize) -> PeerAddr,
    pub(crate) delay: Box<dyn Fn(&Datagram) -> u64>,
}

pub(crate) fn address(node: usize) -> PeerAddr {
    SocketAddr::from(([10, 0, (node >> 8) as u8, node as u8], 7373)).into()
}

pub(crate) fn keys() -> Keys {
    Keys::unsealed("test")
}

impl Net {
    pub(crate) fn new() -> Net {
        Net {
            nodes: Vec::new(),
            now: 1000 * SECOND,
            in_flight: BTreeMap::new(),
            count: 0,
            sent: Vec::new(),
            lose: Box::new(|_| false),
            copies: 1,
            address,
            delay: Box::new(|_| DELAY),
        }
    }

    /// A network of nodes that know each other, with one rule.
    pub(crate) fn of(nodes: usize, rule: &Rule) -> Net {
        let mut net = Net::new();
        (0..nodes).for_each(|_| net.start(rule.clone(), |_| {}));
        net.run(3 * SECOND);
        net
    }

    /// Starts a node at the next address.
    pub(crate) fn start(
        &mut self,
        rule: impl Into<Option<Rule>>,
        change: impl FnOnce(&mut Settings),
    ) {
        let node = self.node(self.nodes.len(), rule.into(), change);
        self.nodes.push(node);
    }

    /// Replaces a node with a new one that keeps nothing of the old one.
    pub(crate) fn restart(&mut self, index: usize, rule: Rule) {
        self.nodes[index] = self.node(index, Some(rule), |_| {});
    }

    fn node(
        &self,
        index: usize,
        rule: Option<Rule>,
        change: impl FnOnce(&mut Settings),
    ) -> TestNode {
        let clock = ManualClock::new();
        clock.set(Duration::from_nanos(self.now)).unwrap();
        let mut settings = Settings::new(keys(), (self.address)(index));
        change(&mut settings);
        let reports = if settings.periodic { Reports::Periodic } else { Reports::Eager };
        let builder = Throttle::builder().rule(rule.unwrap_or_else(Rule::unlimited));
        let throttle = builder
            .clock(clock.clone())
            .cluster(ClusterConfig::new("test").reports(reports))
            .table(TableConfig::private().tags(200_000))
            .build()
            .unwrap();
        let seed = self.now + index as u64;
        let mut engine =
            Engine::new(settings, internals::exchange(&throttle), seed, self.now, self.now);
        engine.record_applied();
        let peers: Vec<PeerAddr> = (0..self.nodes.len()).map(self.address).collect();
        engine.join(self.now, &peers);
        let (events, next_timeout) = (Vec::new(), self.now);
        let address = (self.address)(index);
        TestNode { throttle, engine, events, next_timeout, clock, address }
    }

    pub(crate) fn allow(&self, node: usize, tag: &str) -> bool {
        self.nodes[node].throttle.allow(tag).unwrap()
    }

    pub(crate) fn balance(&self, node: usize, tag: &str) -> i64 {
        self.nodes[node].throttle.peek(tag).unwrap().balance
    }

    /// Sends a datagram, unless it is lost.
    pub(crate) fn send(&mut self, datagram: Datagram) {
        self.sent.push(datagram.clone());
        if (self.lose)(&datagram) {
            return;
        }
        let arrival = self.now + (self.delay)(&datagram);
        for _ in 0..self.copies {
            self.count += 1;
            self.in_flight.insert((arrival, self.count), datagram.clone());
        }
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, time: u64) {
        let end = self.now + time;
        loop {
            for index in 0..self.nodes.len() {
                self.drain_outputs(index);
            }
            let arrival = self.in_flight.first_key_value().map(|((at, _), _)| *at);
            let timeout = self.nodes.iter().map(|node| node.next_timeout).min();
            let next = arrival.into_iter().chain(timeout).min().unwrap_or(end).max(self.now);
            if next > end {
                break;
            }
            self.move_clocks(next);
            if arrival.is_some_and(|at| at <= next) {
                let (_, mut datagram) = self.in_flight.pop_first().unwrap();
                let node = self.nodes.iter_mut().find(|node| node.address == datagram.to);
                if let Some(node) = node {
                    node.engine.handle_datagram(next, datagram.from, &mut datagram.bytes);
                }
                continue;
            }
            for node in self.nodes.iter_mut().filter(|node| node.next_timeout <= next) {
                node.engine.handle_timeout(next);
            }
        }
        self.move_clocks(end);
    }

    pub(crate) fn move_clocks(&mut self, to: u64) {
        self.now = to;
        for node in &self.nodes {
            node.clock.set(Duration::from_nanos(to)).unwrap();
        }
    }

    /// Handles all outputs of an engine.
    pub(crate) fn drain_outputs(&mut self, index: usize) {
        loop {
            let from = self.nodes[index].address;
            match self.nodes[index].engine.poll() {
                Output::Transmit(transmit) => {
                    let to = match transmit.to {
                        To::One(address) => vec![address],
                        To::Each(addresses) => addresses.to_vec(),
                        To::Group => panic!("the network has no multicast group"),
                    };
                    for to in to {
                        self.send(Datagram { from, to, bytes: transmit.bytes.clone() });
                    }
                }
                Output::Event(event) => self.nodes[index].events.push(event),
                Output::Timeout(at) => {
                    self.nodes[index].next_timeout = at;
                    return;
                }
            }
        }
    }
}
