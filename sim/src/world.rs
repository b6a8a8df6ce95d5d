//! Runs a scenario with one queue of events in virtual time, for all nodes, all clients and one
//! network.

use std::rc::Rc;

use crate::Ns;
use crate::clients::{Client, Tag, clients};
use crate::fault_actions::{FaultAction, fault_actions};
use crate::ledger::Ledger;
use crate::machine::{Machine, first_peers, send_request};
use crate::measure::Meter;
use crate::network::{Counts, Network};
use crate::node::{Output, SimNode, To};
use crate::outcome::{Outcome, Sample, View};
use crate::queue::Queue;
use crate::scenario::Scenario;

enum Event {
    Deliver { to: u32, from: u32, bytes: Rc<[u8]> },
    Wake(u32),
    Act(u32),
    FaultAction(u32),
    Inspect(u32),
    Sample,
    Begin,
    End,
}

struct Simulation<'a> {
    scenario: &'a Scenario,
    now: Ns,
    queue: Queue<Event>,
    machines: Vec<Machine>,
    network: Network,
    clients: Vec<Client>,
    fault_actions: Vec<(Ns, FaultAction)>,
    ledger: Ledger,
    outcome: Outcome,
    scratch: Vec<u8>,
    sampled: u64,
    /// When the network was last partitioned or healed.
    healed: Ns,
}

/// Runs a scenario to its end.
pub fn run(scenario: &Scenario) -> Outcome {
    let mut simulation = Simulation::new(scenario);
    simulation.begin();
    while let Some((at, event)) = simulation.queue.pop()
        && at <= scenario.last()
    {
        simulation.now = at;
        simulation.handle(event);
    }
    simulation.finish()
}

impl<'a> Simulation<'a> {
    fn new(scenario: &'a Scenario) -> Simulation<'a> {
        let (clients, kinds) = clients(scenario);
        let span = (scenario.settled, scenario.end);
        let meter = || Meter::new(scenario.limit, scenario.nodes, span);
        let outcome = Outcome::new(kinds.into_iter().map(|kind| (kind, meter())).collect());
        let drift = |index| scenario.drift_ppm.get(index).copied().unwrap_or(0);
        let machines = (0..scenario.nodes).map(|index| Machine::new(index, drift(index)));
        Simulation {
            scenario,
            now: 0,
            queue: Queue::default(),
            machines: machines.collect(),
            network: Network::new(&scenario.network, scenario.nodes, scenario.seed),
            clients,
            fault_actions: fault_actions(&scenario.faults),
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
        for i in 0..self.fault_actions.len() {
            self.queue.push(self.fault_actions[i].0, Event::FaultAction(i as u32));
        }
        for (i, inspection) in self.scenario.inspections.iter().enumerate() {
            self.queue.push(inspection.at, Event::Inspect(i as u32));
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
            Event::FaultAction(i) => self.apply_fault(i as usize),
            Event::Inspect(i) => self.inspect(i as usize),
            Event::Sample => self.sample(),
            Event::Begin => self.begin_clients(),
            Event::End => self.outcome.counts = self.network.counts,
        }
    }

    fn begin_clients(&mut self) {
        let up = self.machines.iter().filter_map(|machine| machine.node.as_ref());
        self.outcome.fewest_peers = up.map(SimNode::peers).min().unwrap_or(0);
        self.network.counts = Counts::default();
        for i in 0..self.clients.len() {
            if let Some(at) = self.clients[i].begin(self.now) {
                self.queue.push(at, Event::Act(i as u32));
            }
        }
    }

    fn start(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        machine.starts += 1;
        machine.started = self.now;
        // Later incarnations have greater numbers, and no two nodes have the same.
        let incarnation = (self.now / 1000) << 20 | machine.starts << 10 | (index as u64 % 1024);
        let seed = self.scenario.seed ^ (index as u64) << 20 ^ machine.starts << 50;
        let local = machine.clock.local(self.now);
        let mut node = SimNode::start(self.scenario, index, incarnation, seed, local);
        node.join(local, &first_peers(self.scenario.nodes, index));
        machine.node = Some(node);
        (machine.due, machine.woken) = (Ns::MAX, Ns::MAX);
        self.flush(index);
    }

    fn deliver(&mut self, to: usize, from: usize, bytes: &[u8]) {
        let machine = &mut self.machines[to];
        let Some(node) = &mut machine.node else { return };
        // Copied, because the engine opens datagrams in place and other nodes get the same one.
        self.scratch.clear();
        self.scratch.extend_from_slice(bytes);
        node.datagram(machine.clock.local(self.now), from, &mut self.scratch);
        let id = node.origin_id();
        let since = self.healed.max(machine.started);
        for (of, first, last) in node.applied() {
            self.ledger.charge(id, of, (first, last), self.now, since);
        }
        self.flush(to);
    }

    fn wake(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        if machine.woken != self.now {
            return;
        }
        machine.woken = Ns::MAX;
        if machine.due <= self.now
            && let Some(node) = &mut machine.node
        {
            node.timeout(machine.clock.local(self.now));
        }
        self.flush(index);
    }

    /// Sends a node's outputs, and schedules its next wake-up.
    fn flush(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        let Some(node) = &mut machine.node else { return };
        let mut out = Vec::new();
        let (now, id) = (self.now, node.origin_id());
        let due = node.poll(|output| match output {
            Output::Send(to, bytes) => out.push((to, bytes)),
            Output::Reported(number) => self.ledger.report(id, number, now),
            Output::Event(event) => self.outcome.events.push((now, index, event)),
        });
        // Work that is already due is done in the next nanosecond, so that time advances.
        machine.due = machine.clock.virtual_time(due).max(self.now + 1);
        if machine.due < machine.woken {
            machine.woken = machine.due;
            let at = machine.due;
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
                let all = (0..self.machines.len()).filter(|to| *to != from);
                all.for_each(|to| self.send_one(from, to, &bytes));
            }
        }
    }

    fn send_one(&mut self, from: usize, to: usize, bytes: &Rc<[u8]>) {
        if to >= self.machines.len() {
            return;
        }
        for at in self.network.send(self.now, from, to).into_iter().flatten() {
            let bytes = Rc::clone(bytes);
            self.queue.push(at, Event::Deliver { to: to as u32, from: from as u32, bytes });
        }
    }

    fn act(&mut self, i: usize) {
        let Simulation { clients, machines, outcome, now, .. } = self;
        let next = clients[i].act(*now, |request| send_request(machines, outcome, *now, request));
        if let Some(at) = next {
            self.queue.push(at, Event::Act(i as u32));
        }
    }

    fn apply_fault(&mut self, i: usize) {
        match &self.fault_actions[i].1 {
            FaultAction::Partition(sides) => {
                self.network.divide(sides.clone());
                self.healed = self.now;
            }
            FaultAction::Stop { node, graceful } => {
                let (index, graceful) = (*node, *graceful);
                let machine = &mut self.machines[index];
                let local = machine.clock.local(self.now);
                if let Some(node) = &mut machine.node
                    && graceful
                {
                    node.leave(local);
                    self.flush(index);
                }
                self.machines[index].node = None;
            }
            FaultAction::Start(index) => self.start(*index),
            FaultAction::Jump { node, by } => {
                let (index, by) = (*node, *by);
                self.machines[index].clock.jump(self.now, by);
                self.flush(index);
            }
        }
    }

    fn inspect(&mut self, i: usize) {
        let inspection = self.scenario.inspections[i];
        let burst = self.scenario.limit.burst;
        let full = self.scenario.limit.fill();
        for tag in 0..self.outcome.tags.len() {
            let (kind, meter) = &self.outcome.tags[tag];
            let quiet = self.now.saturating_sub(meter.last_request());
            if kind.saturates() != inspection.saturated || !inspection.saturated && quiet < full {
                continue;
            }
            let truth = burst as f64 - meter.level(self.now);
            let balances = self.balances(tag as Tag);
            self.outcome.views.push(View {
                at: self.now,
                tag: tag as Tag,
                saturated: inspection.saturated,
                truth,
                balances,
            });
        }
    }

    fn balances(&mut self, tag: Tag) -> Vec<i64> {
        let now = self.now;
        let up = self.machines.iter_mut().filter_map(|machine| {
            let local = machine.clock.local(now);
            machine.node.as_mut().map(|node| node.balance(local, &tag.to_le_bytes()))
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
        self.outcome.ledger_errors = self.ledger.errors().to_vec();
        self.outcome
    }
}
