//! Runs a scenario: one queue of events in virtual time, all nodes, all clients, one network.

use std::rc::Rc;

use crate::Ns;
use crate::change::{Change, changes};
use crate::clients::{Client, Tag, clients};
use crate::ledger::Ledger;
use crate::measure::Meter;
use crate::network::{Counts, Network};
use crate::node::{Node, Output, To};
use crate::outcome::{Outcome, Sample, View};
use crate::place::{Place, ask, first_peers};
use crate::queue::Queue;
use crate::scenario::Scenario;

enum Event {
    Deliver { to: u32, from: u32, bytes: Rc<[u8]> },
    Wake(u32),
    Act(u32),
    Change(u32),
    Look(u32),
    Sample,
    Begin,
    End,
}

struct World<'a> {
    scenario: &'a Scenario,
    now: Ns,
    queue: Queue<Event>,
    places: Vec<Place>,
    network: Network,
    clients: Vec<Client>,
    changes: Vec<(Ns, Change)>,
    ledger: Ledger,
    outcome: Outcome,
    scratch: Vec<u8>,
    sampled: u64,
    /// When the network was last cut or healed.
    healed: Ns,
}

/// Runs a scenario to its end.
pub fn run(scenario: &Scenario) -> Outcome {
    let mut world = World::new(scenario);
    world.begin();
    while let Some((at, event)) = world.queue.pop()
        && at <= scenario.last()
    {
        world.now = at;
        world.handle(event);
    }
    world.finish()
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> World<'a> {
        let (clients, kinds) = clients(scenario);
        let span = (scenario.settled, scenario.end);
        let meter = || Meter::new(scenario.limit, scenario.nodes, span);
        let outcome = Outcome::new(kinds.into_iter().map(|kind| (kind, meter())).collect());
        let drift = |index| scenario.drift_ppm.get(index).copied().unwrap_or(0);
        let places = (0..scenario.nodes).map(|index| Place::new(index, drift(index)));
        World {
            scenario,
            now: 0,
            queue: Queue::default(),
            places: places.collect(),
            network: Network::new(&scenario.network, scenario.nodes, scenario.seed),
            clients,
            changes: changes(&scenario.faults),
            ledger: Ledger::default(),
            outcome,
            scratch: Vec::new(),
            sampled: 0,
            healed: 0,
        }
    }

    fn begin(&mut self) {
        for index in 0..self.scenario.nodes {
            self.start(index);
        }
        for i in 0..self.changes.len() {
            self.queue.push(self.changes[i].0, Event::Change(i as u32));
        }
        for (i, look) in self.scenario.looks.iter().enumerate() {
            self.queue.push(look.at, Event::Look(i as u32));
        }
        if let Some(every) = self.scenario.sample {
            self.queue.push(every, Event::Sample);
        }
        self.queue.push(self.scenario.begin, Event::Begin);
        self.queue.push(self.scenario.end, Event::End);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Deliver { to, from, bytes } => self.deliver(to as usize, from as usize, &bytes),
            Event::Wake(index) => self.wake(index as usize),
            Event::Act(client) => self.act(client as usize),
            Event::Change(i) => self.change(i as usize),
            Event::Look(i) => self.look(i as usize),
            Event::Sample => self.sample(),
            Event::Begin => self.begin_clients(),
            Event::End => self.outcome.counts = self.network.counts,
        }
    }

    fn begin_clients(&mut self) {
        let up = self.places.iter().filter_map(|place| place.node.as_ref());
        self.outcome.fewest_peers = up.map(Node::peers).min().unwrap_or(0);
        self.network.counts = Counts::default();
        for i in 0..self.clients.len() {
            if let Some(at) = self.clients[i].begin(self.now) {
                self.queue.push(at, Event::Act(i as u32));
            }
        }
    }

    fn start(&mut self, index: usize) {
        let place = &mut self.places[index];
        place.lives += 1;
        place.started = self.now;
        // Later lives have greater numbers, and no two nodes the same.
        let incarnation = (self.now / 1000) << 20 | place.lives << 10 | (index as u64 % 1024);
        let seed = self.scenario.seed ^ (index as u64) << 20 ^ place.lives << 50;
        let local = place.clock.local(self.now);
        let mut node = Node::start(self.scenario, index, incarnation, seed, local);
        node.join(local, &first_peers(self.scenario.nodes, index));
        place.node = Some(node);
        (place.due, place.woken) = (Ns::MAX, Ns::MAX);
        self.flush(index);
    }

    fn deliver(&mut self, to: usize, from: usize, bytes: &[u8]) {
        let place = &mut self.places[to];
        let Some(node) = &mut place.node else { return };
        // The engine opens datagrams in place, and others get the same one.
        self.scratch.clear();
        self.scratch.extend_from_slice(bytes);
        node.datagram(place.clock.local(self.now), from, &mut self.scratch);
        let life = node.life();
        let since = self.healed.max(place.started);
        for (of, first, last) in node.applied() {
            self.ledger.charge(life, of, (first, last), self.now, since);
        }
        self.flush(to);
    }

    fn wake(&mut self, index: usize) {
        let place = &mut self.places[index];
        if place.woken != self.now {
            return;
        }
        place.woken = Ns::MAX;
        if place.due <= self.now
            && let Some(node) = &mut place.node
        {
            node.timeout(place.clock.local(self.now));
        }
        self.flush(index);
    }

    /// Sends what a node has to send, and sees to it that it is woken in time.
    fn flush(&mut self, index: usize) {
        let place = &mut self.places[index];
        let Some(node) = &mut place.node else { return };
        let mut out = Vec::new();
        let (now, life) = (self.now, node.life());
        let due = node.poll(|output| match output {
            Output::Send(to, bytes) => out.push((to, bytes)),
            Output::Reported(number) => self.ledger.report(life, number, now),
            Output::Event(event) => self.outcome.events.push((now, index, event)),
        });
        // What is due already happens in the next nanosecond: time must go on.
        place.due = place.clock.when(due).max(self.now + 1);
        if place.due < place.woken {
            place.woken = place.due;
            let at = place.due;
            self.queue.push(at, Event::Wake(index as u32));
        }
        for (to, bytes) in out {
            self.send(index, &to, &bytes);
        }
    }

    fn send(&mut self, from: usize, to: &To, bytes: &[u8]) {
        self.outcome.note(self.now, bytes);
        let bytes: Rc<[u8]> = Rc::from(bytes);
        match to {
            To::One(to) => {
                self.network.count(1, bytes.len());
                self.send_one(from, *to, &bytes);
            }
            To::Each(all) => {
                self.network.count(all.count(), bytes.len());
                all.iter().for_each(|to| self.send_one(from, to, &bytes));
            }
            To::Group => {
                self.network.count(1, bytes.len());
                let all = (0..self.places.len()).filter(|to| *to != from);
                all.for_each(|to| self.send_one(from, to, &bytes));
            }
        }
    }

    fn send_one(&mut self, from: usize, to: usize, bytes: &Rc<[u8]>) {
        if to >= self.places.len() {
            return;
        }
        for at in self.network.send(self.now, from, to).into_iter().flatten() {
            let bytes = Rc::clone(bytes);
            self.queue.push(at, Event::Deliver { to: to as u32, from: from as u32, bytes });
        }
    }

    fn act(&mut self, i: usize) {
        let World { clients, places, outcome, now, .. } = self;
        let next = clients[i].act(*now, |request| ask(places, outcome, *now, request));
        if let Some(at) = next {
            self.queue.push(at, Event::Act(i as u32));
        }
    }

    fn change(&mut self, i: usize) {
        match &self.changes[i].1 {
            Change::Divide(sides) => {
                self.network.divide(sides.clone());
                self.healed = self.now;
            }
            Change::Stop { node, graceful } => {
                let (index, graceful) = (*node, *graceful);
                let place = &mut self.places[index];
                let local = place.clock.local(self.now);
                if let Some(node) = &mut place.node
                    && graceful
                {
                    node.leave(local);
                    self.flush(index);
                }
                self.places[index].node = None;
            }
            Change::Start(index) => self.start(*index),
            Change::Jump { node, by } => {
                let (index, by) = (*node, *by);
                self.places[index].clock.jump(self.now, by);
                self.flush(index);
            }
        }
    }

    fn look(&mut self, i: usize) {
        let look = self.scenario.looks[i];
        let burst = self.scenario.limit.burst;
        let full = self.scenario.limit.fill();
        for tag in 0..self.outcome.tags.len() {
            let (kind, meter) = &self.outcome.tags[tag];
            let quiet = self.now.saturating_sub(meter.last_asked());
            if kind.saturates() != look.saturated || !look.saturated && quiet < full {
                continue;
            }
            let truth = burst as f64 - meter.level(self.now);
            let balances = self.balances(tag as Tag);
            self.outcome.views.push(View {
                at: self.now,
                tag: tag as Tag,
                saturated: look.saturated,
                truth,
                balances,
            });
        }
    }

    fn balances(&mut self, tag: Tag) -> Vec<i64> {
        let now = self.now;
        let up = self.places.iter_mut().filter_map(|place| {
            let local = place.clock.local(now);
            place.node.as_mut().map(|node| node.balance(local, &tag.to_le_bytes()))
        });
        up.collect()
    }

    fn sample(&mut self) {
        let admitted = self.outcome.tags.first().map_or(0, |(_, meter)| meter.totals().1);
        let balances = self.balances(0);
        let sample = Sample { at: self.now, admitted: admitted - self.sampled, balances };
        self.sampled = admitted;
        self.outcome.samples.push(sample);
        if let Some(every) = self.scenario.sample {
            self.queue.push(self.now + every, Event::Sample);
        }
    }

    fn finish(mut self) -> Outcome {
        self.outcome.slowest = self.ledger.slowest();
        self.outcome.ledger_entries = self.ledger.entries();
        self.outcome.ledger_faults = self.ledger.faults().to_vec();
        self.outcome
    }
}
