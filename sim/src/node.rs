//! One node: a throttle with a table and a clock of its own, and the exchange that keeps it in
//! step with its peers. The only file that knows how these two are called.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use dthrottle::cluster::{Verdict, Window};
use dthrottle::exchange::{Entry, Exchange};
use dthrottle::{Ask, ManualClock, Rule, TableConfig, Throttle};

use crate::bound;
use crate::ledger::Life;
use crate::scenario::Scenario;
use crate::{MS, Ns};

const PORT: u16 = 4141;
const TICK: Ns = 10 * MS;

/// The address of a node.
pub fn address(index: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from(0x0a00_0001 + index as u32), PORT))
}

/// The node at an address.
pub fn index(address: SocketAddr) -> usize {
    match address {
        SocketAddr::V4(address) => (u32::from(*address.ip()) - 0x0a00_0001) as usize,
        SocketAddr::V6(_) => usize::MAX,
    }
}

/// Who gets a datagram.
pub enum To {
    /// A node.
    One(usize),
    /// Each of these nodes.
    Each(Vec<usize>),
    /// All that listen to the group.
    Group,
}

/// A node at work. All times are those of its own clock.
pub struct Node {
    clock: ManualClock,
    throttle: Throttle,
    exchange: Exchange,
    tolerance: Duration,
    me: usize,
    life: u64,
    peers: Vec<usize>,
    repair: bool,
    dedupe: bool,
    next: Ns,
    sent: Vec<Vec<Entry>>,
    windows: HashMap<usize, (u64, Window)>,
    out: Vec<(To, Vec<u8>)>,
    applied: Vec<(Life, u64, u64)>,
}

impl Node {
    /// Starts a node that knows no peer yet.
    pub fn start(scenario: &Scenario, me: usize, incarnation: u64, seed: u64, now: Ns) -> Node {
        let clock = ManualClock::new();
        clock.advance(Duration::from_nanos(now));
        let rule = Rule::per_second(scenario.limit.rate).burst(scenario.limit.burst);
        let throttle = Throttle::builder()
            .rule(rule)
            .clock(clock.clone())
            .fingerprint_key([1, 2])
            .table(TableConfig::private().tags(160_000))
            .build()
            .expect("a rule of a scenario is a rule");
        let exchange = throttle.exchange();
        Node {
            clock,
            throttle,
            exchange,
            tolerance: Duration::from_nanos(bound::tolerance(scenario)),
            me,
            life: incarnation,
            peers: Vec::new(),
            repair: scenario.controls.repair,
            dedupe: scenario.controls.dedupe,
            next: now + seed % TICK,
            sent: Vec::new(),
            windows: HashMap::new(),
            out: Vec::new(),
            applied: Vec::new(),
        }
    }

    /// Tells it addresses to begin with.
    pub fn join(&mut self, _now: Ns, peers: &[usize]) {
        self.peers = peers.iter().copied().filter(|peer| *peer != self.me).collect();
    }

    /// Lets it say goodbye.
    pub fn leave(&mut self, now: Ns) {
        self.timeout(now);
    }

    /// Its name in ledgers.
    pub fn life(&self) -> Life {
        Life { node: self.me as u64, incarnation: self.life }
    }

    /// How many peers it knows to be there.
    pub fn peers(&self) -> usize {
        self.peers.len()
    }

    /// A client asks.
    pub fn ask(&mut self, now: Ns, tag: &[u8], units: u64) -> bool {
        self.set(now);
        let ask = Ask::cost(units).max_wait(self.tolerance);
        self.throttle.allow_with(tag, ask).expect("no request costs more than the burst")
    }

    /// Units left in a bucket, below zero in debt.
    pub fn balance(&mut self, now: Ns, tag: &[u8]) -> i64 {
        self.set(now);
        self.throttle.peek(tag).expect("open").balance
    }

    /// A datagram arrives.
    pub fn datagram(&mut self, now: Ns, from: usize, bytes: &mut [u8]) {
        self.set(now);
        let words: Vec<u64> =
            bytes.chunks(8).map(|w| u64::from_le_bytes(w.try_into().expect("8"))).collect();
        let (kind, life, first, age) = (words[0], words[1], words[2], words[3]);
        if kind == 1 {
            for n in first..=age {
                self.resend(from, n);
            }
            return;
        }
        let window = self.windows.entry(from).or_default();
        if window.0 != life {
            *window = (life, Window::new(first.saturating_sub(1), vec![]));
        }
        if kind == 2 {
            window.1.hear_of(first);
            return;
        }
        if window.1.verdict(first, first) != Verdict::New && self.dedupe {
            return;
        }
        window.1.mark(first, first);
        let entries: Vec<Entry> =
            words[4..].chunks(2).map(|w| Entry { fingerprint: w[0], hits: w[1] }).collect();
        self.exchange.apply(&self.throttle, 0, &entries, Duration::from_nanos(age));
        self.applied.push((Life { node: from as u64, incarnation: life }, first, first));
    }

    fn resend(&mut self, to: usize, n: u64) {
        let Some(entries) = self.sent.get(n as usize - 1) else { return };
        let mut words = vec![0, self.life, n, TICK];
        words.extend(entries.iter().flat_map(|entry| [entry.fingerprint, entry.hits]));
        self.push(To::One(to), &words);
    }

    fn push(&mut self, to: To, words: &[u64]) {
        self.out.push((to, words.iter().flat_map(|word| word.to_le_bytes()).collect()));
    }

    /// Its time has come.
    pub fn timeout(&mut self, now: Ns) {
        self.set(now);
        self.exchange.stay();
        let mut entries = Vec::new();
        self.exchange.drain(|_, entry| entries.push(entry));
        if !entries.is_empty() {
            self.sent.push(entries.clone());
            let mut words = vec![0, self.life, self.sent.len() as u64, TICK];
            words.extend(entries.iter().flat_map(|entry| [entry.fingerprint, entry.hits]));
            self.push(To::Each(self.peers.clone()), &words);
        }
        if (now / TICK).is_multiple_of(10) {
            self.push(To::Each(self.peers.clone()), &[2, self.life, self.sent.len() as u64, 0]);
        }
        if self.repair && (now / TICK).is_multiple_of(3) {
            let mut gaps: Vec<(usize, u64, u64, u64)> = Vec::new();
            for (&peer, (life, window)) in &self.windows {
                gaps.extend(window.missing().iter().map(|&(a, b)| (peer, *life, a, b)));
            }
            gaps.sort_unstable();
            for (peer, life, a, b) in gaps {
                self.push(To::One(peer), &[1, life, a, b]);
            }
        }
        self.next = now + TICK;
    }

    /// Hands out what is to be sent, and says when its time will come.
    pub fn poll(&mut self, mut send: impl FnMut(To, Vec<u8>)) -> Ns {
        for (to, bytes) in self.out.drain(..) {
            send(to, bytes);
        }
        self.next
    }

    /// What it charged since it was asked last: reports of whom, first and last number.
    pub fn applied(&mut self) -> Vec<(Life, u64, u64)> {
        std::mem::take(&mut self.applied)
    }

    fn set(&mut self, now: Ns) {
        self.clock.set(Duration::from_nanos(now)).expect("a node's time never goes back");
    }
}
