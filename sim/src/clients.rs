//! Simulated clients: each decides when to send which request to which node, and learns only
//! whether it was allowed.

use std::collections::VecDeque;

use rand::RngExt;

use crate::bound::rule_period;
use crate::measure::{Limit, Reference};
use crate::scenario::{ClientKind, Load, Scenario};
use crate::{Ns, Random, SEC, random};

/// The number of a tag in a run.
pub type Tag = u32;

/// A request. If its node is down, the next one that is up gets it.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The node.
    pub node: usize,
    /// The tag.
    pub tag: Tag,
    /// The cost in units.
    pub units: u64,
}

/// Planned requests to a node: this many, or until one is refused.
#[derive(Clone, Copy, Debug)]
struct PlannedRequests {
    at: Ns,
    node: usize,
    times: u64,
}

/// A client.
pub struct Client {
    kind: ClientKind,
    limit: Limit,
    nodes: usize,
    first: Tag,
    cost: u64,
    demand: f64,
    end: Ns,
    random: Random,
    plans: VecDeque<PlannedRequests>,
    /// An exact bucket, which tells a conforming client what it may still request.
    reference: Reference,
    /// The current node of a hopper.
    at: usize,
    /// The cumulative shares of tags.
    shares: Vec<f64>,
    period: Ns,
}

/// Creates all clients of a scenario. Also returns the kind of client of each tag.
pub fn clients(scenario: &Scenario) -> (Vec<Client>, Vec<ClientKind>) {
    let (mut clients, mut kinds) = (Vec::new(), Vec::new());
    for load in &scenario.loads {
        let first = kinds.len() as Tag;
        kinds.extend((0..load.tags).map(|_| load.kind));
        let tags = match load.kind {
            ClientKind::Zipf { .. } => 1,
            _ => load.tags,
        };
        clients.extend((0..tags).map(|tag| Client::new(scenario, load, first + tag)));
    }
    (clients, kinds)
}

impl Client {
    fn new(scenario: &Scenario, load: &Load, first: Tag) -> Client {
        let mut limit = scenario.limit;
        if let ClientKind::Conforming { share } = load.kind {
            limit.rate = ((limit.rate as f64 * share.0) as u64).max(1);
            limit.burst = ((limit.burst as f64 * share.1) as u64).max(2 * scenario.cost);
        }
        let shares = match load.kind {
            ClientKind::Zipf { exponent } => zipf(load.tags, exponent),
            _ => Vec::new(),
        };
        Client {
            kind: load.kind,
            limit,
            nodes: scenario.nodes,
            first,
            cost: scenario.cost,
            demand: load.demand,
            end: load.end.unwrap_or(scenario.end).min(scenario.end),
            random: random(scenario.seed, 1000 + u64::from(first)),
            plans: VecDeque::new(),
            reference: Reference::default(),
            at: first as usize % scenario.nodes,
            shares,
            period: rule_period(scenario),
        }
    }

    /// Returns the time of the first request, or `None` if that is after the end.
    pub fn begin(&mut self, at: Ns) -> Option<Ns> {
        let at = at + self.pause();
        (at < self.end).then_some(at)
    }

    /// Sends requests, and returns the time of the next ones.
    pub fn act(&mut self, now: Ns, mut send: impl FnMut(Request) -> bool) -> Option<Ns> {
        let next = match self.kind {
            ClientKind::Greedy => {
                send(self.request());
                now + self.pause()
            }
            ClientKind::Zipf { .. } => {
                let share = self.random.random_range(0.0..1.0);
                let rank = self.shares.partition_point(|sum| *sum < share);
                let rank = rank.min(self.shares.len() - 1) as Tag;
                send(Request { tag: self.first + rank, ..self.request() });
                now + self.pause()
            }
            ClientKind::Hopper => {
                if !send(Request { node: self.at, ..self.request() }) {
                    self.at = (self.at + 1) % self.nodes;
                }
                now + self.pause()
            }
            ClientKind::Conforming { .. } => self.conform(now, &mut send),
            ClientKind::Trickle | ClientKind::Blast => self.follow_plans(now, &mut send),
        };
        (next < self.end).then_some(next)
    }

    fn request(&mut self) -> Request {
        Request { node: self.random.random_range(0..self.nodes), tag: self.first, units: self.cost }
    }

    /// Returns a random time until the next request, which gives the configured demand on average.
    fn pause(&mut self) -> Ns {
        let uniform: f64 = self.random.random_range(f64::EPSILON..1.0);
        1 + (-uniform.ln() / self.demand.max(1e-3) * SEC as f64) as Ns
    }

    /// Sends single requests, pairs, all available units, or nothing for a while: always within the
    /// limit, and often exactly at it.
    fn conform(&mut self, now: Ns, send: &mut impl FnMut(Request) -> bool) -> Ns {
        let available = self.reference.available(self.limit, now) / self.cost;
        let mode = self.random.random_range(0..20);
        let (units, times) = match mode {
            0 => (1, available),
            1..4 => (available.min(2), 1),
            _ => (1, 1),
        };
        for _ in 0..times.min(available) {
            let request = Request { units: units * self.cost, ..self.request() };
            self.reference.add(self.limit, now, request.units);
            send(request);
        }
        let unit = (self.cost * SEC).div_ceil(self.limit.rate);
        let burst = unit * self.limit.burst / self.cost;
        let pause = match self.random.random_range(0..40) {
            0 => self.random.random_range(0..=burst),
            1..10 => self.random.random_range(0..=2 * unit),
            _ => 1,
        };
        self.reference.available_at(self.limit, now + pause, self.cost)
    }

    fn follow_plans(&mut self, now: Ns, send: &mut impl FnMut(Request) -> bool) -> Ns {
        if let Some(plan) = self.plans.pop_front() {
            for _ in 0..plan.times {
                if !send(Request { node: plan.node, ..self.request() }) {
                    break;
                }
            }
        }
        if self.plans.is_empty() {
            self.plan(now);
        }
        self.plans.front().map_or(Ns::MAX, |plan| plan.at)
    }

    fn plan(&mut self, now: Ns) {
        let full = self.limit.fill();
        let pause = self.random.random_range(0..=2 * full);
        let mut at = now + 1 + pause;
        let target = self.random.random_range(0..self.nodes);
        if self.kind == ClientKind::Trickle {
            let span = self.random.random_range(1..=3 * self.period);
            let times = (self.limit.burst / 4 / self.cost).max(1);
            for i in 0..times {
                let node = (target + 1 + i as usize) % self.nodes;
                self.plans.push_back(PlannedRequests { at: at + span * i / times, node, times: 1 });
            }
            at += span;
        }
        let targets =
            if self.kind == ClientKind::Blast { 0..self.nodes } else { target..target + 1 };
        for node in targets {
            self.plans.push_back(PlannedRequests {
                at,
                node,
                times: 2 * self.limit.burst / self.cost,
            });
        }
    }
}

/// Returns the cumulative shares of tags, which fall with the rank. The last value is 1.
fn zipf(tags: u32, exponent: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=tags).map(|rank| f64::from(rank).powf(-exponent)).collect();
    let all: f64 = weights.iter().sum();
    weights
        .iter()
        .scan(0.0, |sum, weight| {
            *sum += weight / all;
            Some(*sum)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Meter;

    fn run(kind: ClientKind, demand: f64, mut answer: impl FnMut(Ns, Request) -> bool) {
        let scenario = Scenario::new("clients", 5, 4).load(kind, 1, demand);
        let (mut clients, _) = clients(&scenario);
        let mut next = clients[0].begin(0);
        while let Some(now) = next {
            next = clients[0].act(now, |request| answer(now, request));
            assert!(next.is_none_or(|next| next > now), "the next time is later");
        }
    }

    #[test]
    fn conforming_clients_stay_within_the_limit_and_use_it() {
        let limit = Scenario::new("", 1, 1).limit;
        let mut meter = Meter::new(limit, 4, (0, 15 * SEC));
        run(ClientKind::CONFORMING, 10.0, |now, request| {
            meter.record(now, request.node, request.units, true);
            true
        });
        assert!(meter.excess() <= 0.0, "{}", meter.excess());
        assert!(meter.excess() > -1.0, "close to the limit: {}", meter.excess());
        assert!(meter.totals().1 > 1000, "{:?}", meter.totals());
    }

    #[test]
    fn greedy_clients_send_the_configured_demand() {
        let mut asked = [0; 4];
        run(ClientKind::Greedy, 1000.0, |_, request| {
            asked[request.node] += 1;
            false
        });
        assert!(asked.iter().all(|n| (3400..4100).contains(n)), "{asked:?}");
    }

    #[test]
    fn a_hopper_changes_the_node_when_it_is_refused() {
        let mut last = None;
        run(ClientKind::Hopper, 1000.0, |now, request| {
            let allowed = now % 7 != 0;
            if let Some((node, allowed)) = last {
                assert_eq!(request.node == node, allowed);
            }
            last = Some((request.node, allowed));
            allowed
        });
    }

    #[test]
    fn zipf_shares_fall_with_the_rank() {
        let shares = zipf(100, 1.0);
        assert!((shares[99] - 1.0).abs() < 1e-9);
        assert!((shares[0] / (shares[1] - shares[0]) - 2.0).abs() < 1e-9);
    }
}
