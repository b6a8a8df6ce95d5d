//! Clients and a server in virtual time: the server serves a number of requests per second and
//! answers busy to the others; the clients send the requests that their throttles allow.

use std::collections::VecDeque;
use std::time::Duration;

use dthrottle::busy::{BusyThrottle, Mode};
use dthrottle::internals::cluster::Payload;
use dthrottle::{BusyConfig, ClusterConfig, ManualClock};

/// The delay of a payload from one node to the others, in seconds.
const PAYLOAD_S: f64 = 0.012;

/// How a server counts requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Server {
    /// In whole seconds of its own clock.
    Seconds,
    /// Evenly, with a burst of a tenth of a second.
    Even,
}

/// The parameters of a run.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub server: Server,
    /// `None` runs without a throttle.
    pub mode: Option<Mode>,
    /// Whether the clients are nodes of a cluster that share busy responses.
    pub shares: bool,
    pub clients: usize,
    /// Requests per second of all clients together.
    pub demand: f64,
    /// The server's capacity, as (second from which it applies, requests per second).
    pub capacity: Vec<(f64, f64)>,
    pub retry_after: Option<Duration>,
    pub seconds: usize,
    /// The time from request to response, in milliseconds.
    pub latency_ms: u64,
    pub seed: u64,
}

/// The numbers of requests in one second, by result.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SecondCounts {
    pub good: u64,
    pub busy: u64,
    pub held: u64,
}

impl World {
    pub(crate) fn new(mode: Option<Mode>) -> World {
        World {
            server: Server::Even,
            mode,
            shares: false,
            clients: 4,
            demand: 1000.0,
            capacity: vec![(0.0, 400.0)],
            retry_after: None,
            seconds: 40,
            latency_ms: 20,
            seed: 1,
        }
    }

    pub(crate) fn run(&self) -> Vec<SecondCounts> {
        // With a manual clock there is no exchange thread, so this loop transports the payloads.
        let clock = ManualClock::new();
        let config = |mode: Mode| BusyConfig::new().mode(mode).cluster(ClusterConfig::new("world"));
        let throttle = |mode| BusyThrottle::with_clock(config(mode), clock.clone()).unwrap();
        let throttles: Vec<Option<BusyThrottle>> =
            (0..self.clients).map(|_| self.mode.map(throttle)).collect();
        let mut seconds_counts = vec![SecondCounts::default(); self.seconds];
        let mut random = Random(self.seed);
        let mut payloads: Vec<Option<Box<dyn Payload>>> =
            throttles.iter().map(|it| it.as_ref().map(|it| it.payload(true))).collect();
        let mut broadcasts: VecDeque<(f64, usize, Vec<u8>)> = VecDeque::new();
        // Responses in flight: arrival time, client, and whether the response is good.
        let mut in_flight: VecDeque<(f64, usize, bool)> = VecDeque::new();
        let mut state = ServerState { second: 0, counted: 0.0, tokens: 0.0, at: 0.0 };
        let mut now = 0.0;
        loop {
            now += random.pause(self.demand);
            if now >= self.seconds as f64 {
                return seconds_counts;
            }
            while in_flight.front().is_some_and(|(at, ..)| *at <= now) {
                let Some((at, client, good)) = in_flight.pop_front() else { break };
                let Some(throttle) = &throttles[client] else { continue };
                let at = Duration::from_secs_f64(at);
                match good {
                    true => throttle.on_ok("service", at),
                    false => throttle.on_busy("service", at, self.retry_after),
                }
            }
            clock.set(Duration::from_secs_f64(now)).unwrap();
            if self.shares {
                for (client, payload) in payloads.iter_mut().flatten().enumerate() {
                    while let Some(bytes) = payload.take() {
                        broadcasts.push_back((now + PAYLOAD_S, client, bytes));
                    }
                }
            }
            while broadcasts.front().is_some_and(|(at, ..)| *at <= now) {
                let Some((at, from, bytes)) = broadcasts.pop_front() else { break };
                let age_ns = ((now - at + PAYLOAD_S) * 1e9) as u64;
                let others = payloads.iter_mut().flatten().enumerate();
                for (_, payload) in others.filter(|(to, _)| *to != from) {
                    assert!(payload.apply(age_ns, &bytes));
                }
            }
            let client = random.below(self.clients);
            let counts = &mut seconds_counts[now as usize];
            let at = Duration::from_secs_f64(now);
            if throttles[client].as_ref().is_some_and(|it| !it.should_send("service", at)) {
                counts.held += 1;
                continue;
            }
            let good = self.serves(&mut state, now);
            counts.good += u64::from(good);
            counts.busy += u64::from(!good);
            in_flight.push_back((now + self.latency_ms as f64 / 1000.0, client, good));
        }
    }

    fn serves(&self, state: &mut ServerState, now: f64) -> bool {
        let capacity = self.capacity.iter().rev().find(|(from, _)| *from <= now).unwrap().1;
        match self.server {
            Server::Seconds => {
                if now as u64 != state.second {
                    (state.second, state.counted) = (now as u64, 0.0);
                }
                let good = state.counted < capacity;
                state.counted += f64::from(u8::from(good));
                good
            }
            Server::Even => {
                let most = (capacity / 10.0).max(1.0);
                state.tokens = (state.tokens + (now - state.at) * capacity).min(most);
                state.at = now;
                let good = state.tokens >= 1.0;
                state.tokens -= f64::from(u8::from(good));
                good
            }
        }
    }
}

struct ServerState {
    second: u64,
    counted: f64,
    tokens: f64,
    at: f64,
}

/// Returns the good responses per second, and the share of busy responses, over these seconds.
pub(crate) fn average(seconds_counts: &[SecondCounts]) -> (f64, f64) {
    let good: u64 = seconds_counts.iter().map(|counts| counts.good).sum();
    let busy: u64 = seconds_counts.iter().map(|counts| counts.busy).sum();
    (good as f64 / seconds_counts.len() as f64, busy as f64 / (good + busy).max(1) as f64)
}

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Returns a random time between two independent events with this rate per second.
    fn pause(&mut self, rate: f64) -> f64 {
        let part = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        -(1.0 - part).ln() / rate
    }
}
