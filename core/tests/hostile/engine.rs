//! Arbitrary bytes as messages of a peer with the right key, in any order and at any time, to a
//! running engine. The fuzz target `engine` uses this file.

use std::net::SocketAddr;
use std::time::Duration;

use dthrottle::internals;
use dthrottle::internals::cluster::wire::{
    DatagramKind, Envelope, Hello, Keys, MAX_BODY, MAX_DATAGRAM,
};
use dthrottle::internals::cluster::{Engine, Origin, Output, PeerAddr, Settings};
use dthrottle::{
    BusyConfig, BusyThrottle, ClusterConfig, ManualClock, Rule, TableConfig, Throttle,
};

const SECOND: u64 = 1_000_000_000;
/// The maximum number of datagrams that one input may cause.
const MAX_OUTPUTS: usize = 4000;

/// An engine, and the peer that sends to it.
struct TestNode {
    throttle: Throttle,
    busy: BusyThrottle,
    engine: Engine,
    clock: ManualClock,
    now: u64,
    packet: u64,
    peer: Origin,
}

fn keys() -> Keys {
    Keys::unsealed("fuzz")
}

fn address(last: u8) -> PeerAddr {
    SocketAddr::from(([10, 0, 0, last], 7373)).into()
}

impl TestNode {
    fn new() -> TestNode {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(100_000));
        let throttle = Throttle::builder()
            .rule(Rule::per_second(10).burst(100))
            .clock(clock.clone())
            .fingerprint_key(keys().fingerprint_key())
            .table(TableConfig::private().tags(1))
            .cluster(ClusterConfig::new("fuzz"))
            .build()
            .expect("the configuration is valid");
        let now = 100_000 * SECOND;
        let mut settings = Settings::new(keys(), address(1));
        settings.retention_bytes = 1 << 16;
        let busy = BusyThrottle::with_clock(BusyConfig::new(), clock.clone());
        let busy = busy.expect("the configuration is valid");
        let mut engine = Engine::new(settings, internals::exchange(&throttle), 1, 5, now);
        engine.set_payload(busy.payload(true));
        let peer = Origin { node: 77, incarnation: 9 };
        let mut node = TestNode { throttle, busy, engine, clock, now, packet: 0, peer };
        node.engine.join(now, &[address(2)]);
        node.drain_outputs();
        node.advance(SECOND);
        node
    }

    fn advance(&mut self, time: u64) {
        self.now += time;
        self.clock.advance(Duration::from_nanos(time));
        self.engine.handle_timeout(self.now);
        self.drain_outputs();
    }

    fn receive(&mut self, kind: DatagramKind, flags: u8, body: &[u8]) {
        self.packet += 1;
        let envelope = Envelope { kind, flags, sender: self.peer, packet: self.packet };
        let mut bytes = Vec::new();
        keys().seal(&envelope, body, &mut bytes);
        self.engine.handle_datagram(self.now, address(2), &mut bytes);
        self.drain_outputs();
    }

    /// Records a busy response of a service.
    fn busy_response(&mut self, service: &[u8]) {
        let now = self.busy.now();
        let turn = self.busy.turn(service, now);
        assert!(
            turn.allowed || turn.wait <= Duration::from_secs(3600),
            "the wait is limited: {turn:?}"
        );
        self.busy.on_busy(service, now, None);
        assert!(self.busy.limit(service, now).is_some_and(|limit| limit >= 1.0));
    }

    /// Drains the engine's outputs, and answers its HELLO datagrams.
    fn drain_outputs(&mut self) {
        for _ in 0..MAX_OUTPUTS {
            match self.engine.poll() {
                Output::Timeout(at) => {
                    assert!(at > self.now.saturating_sub(SECOND), "the timeout is not in the past");
                    return;
                }
                Output::Event(_) => {}
                Output::Transmit(transmit) => {
                    assert!(transmit.bytes.len() <= MAX_DATAGRAM);
                    let mut bytes = transmit.bytes;
                    let (envelope, body) =
                        keys().open(&mut bytes).expect("the engine's own datagram is valid");
                    if envelope.kind == DatagramKind::Hello
                        && let Ok(hello) = Hello::parse(body)
                        && hello.challenge != 0
                    {
                        self.answer(&hello);
                    }
                }
            }
        }
        panic!("the engine does not stop sending");
    }

    fn answer(&mut self, hello: &Hello) {
        let answer = Hello {
            challenge: 0,
            echo: hello.challenge,
            top: 3,
            rules: 1,
            slack_us: u64::MAX,
            slack_age_us: 0,
            address: address(2),
        };
        let mut body = Vec::new();
        answer.write(&mut body);
        self.packet += 1;
        let sender = self.peer;
        let envelope =
            Envelope { kind: DatagramKind::Hello, flags: 0, sender, packet: self.packet };
        let mut bytes = Vec::new();
        keys().seal(&envelope, &body, &mut bytes);
        self.engine.handle_datagram(self.now, address(2), &mut bytes);
    }
}

/// Runs a script: each message has a kind, flags, a length and a body. Some messages are checks of
/// the application or the passing of time.
pub(crate) fn try_engine(mut bytes: &[u8]) {
    let mut node = TestNode::new();
    while let [kind, flags, high, low, rest @ ..] = bytes {
        let length = (usize::from(*high) << 8 | usize::from(*low)).min(rest.len()).min(MAX_BODY);
        let (body, rest) = rest.split_at(length);
        bytes = rest;
        match usize::from(*kind) % 14 {
            known @ 0..10 => node.receive(DatagramKind::ALL[known], *flags, body),
            10 => {
                node.throttle.allow(body).expect("checks do not fail");
            }
            11 => node.busy_response(body),
            12 => node.advance(u64::from(*flags) * 3_000_000),
            _ => node.advance(u64::from(*flags) * 20 * SECOND),
        }
    }
    // Whatever the engine received, it still works.
    node.advance(20 * SECOND);
    node.throttle.allow("a tag").expect("checks do not fail");
    node.engine.leave(node.now);
}
