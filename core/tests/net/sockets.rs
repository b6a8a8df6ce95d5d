//! Many datagrams of all sizes between two sockets: each arrives once, complete and unchanged.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use dthrottle::internals::cluster::{PeerAddr, To, Transmit};
use dthrottle::internals::udp::{Inbox, Outbox, Socket};

use crate::test_engine::{Environment, to_one};

const ROUNDS: u32 = 60;
const EACH_ROUND: u32 = 100;

/// A datagram whose bytes depend on its number and position.
fn datagram(number: u32) -> Vec<u8> {
    // Runs of the maximum size, a shorter datagram, runs of another size, and various sizes.
    let size = match number % EACH_ROUND {
        0..40 => 1232,
        40 => 700,
        41..70 => 300,
        _ => 8 + number.wrapping_mul(2_654_435_761) % 1225,
    };
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.extend((4..size).map(|at| (number.wrapping_mul(31) ^ at) as u8));
    bytes
}

async fn next(inbox: &mut Inbox, socket: &Socket) -> (SocketAddr, Vec<u8>) {
    loop {
        if let Some((from, bytes)) = inbox.next() {
            return (from, bytes.to_vec());
        }
        socket.readable().await.unwrap();
        match inbox.fill(socket) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            filled => filled.unwrap(),
        }
    }
}

fn run(test: impl AsyncFnOnce(&Environment)) {
    let environment = Environment::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test(&environment));
    assert!(environment.fds.lock().unwrap().is_empty(), "all sockets are closed");
}

async fn all_arrive(environment: &Environment, from: &str, to: &str, seen: &str) {
    let hooks = environment.hooks();
    let sender = Socket::open(from.parse().unwrap(), &hooks).unwrap();
    let receiver = Socket::open(to.parse().unwrap(), &hooks).unwrap();
    let destination = SocketAddr::new(receiver.local().ip(), receiver.local().port());
    let source = SocketAddr::new(seen.parse().unwrap(), sender.local().port());
    let (mut inbox, mut outbox) = (Inbox::default(), Outbox::default());
    for round in 0..ROUNDS {
        let numbers = || round * EACH_ROUND..(round + 1) * EACH_ROUND;
        for number in numbers() {
            outbox.push(to_one(destination, datagram(number)));
        }
        assert!(outbox.send(Some(&sender), None, &environment.counters).await.unwrap());
        for number in numbers() {
            let (from, bytes) = next(&mut inbox, &receiver).await;
            assert_eq!((from, bytes), (source, datagram(number)));
        }
    }
    assert!(inbox.next().is_none());
    assert_eq!(inbox.fill(&receiver).unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn thousands_of_datagrams_arrive_unchanged_over_ipv4() {
    run(async |environment| {
        all_arrive(environment, "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1").await;
    });
}

#[test]
fn thousands_of_datagrams_arrive_unchanged_over_ipv6() {
    run(async |environment| all_arrive(environment, "[::1]:0", "[::1]:0", "::1").await);
}

#[test]
fn thousands_of_datagrams_arrive_unchanged_over_a_dual_stack_socket() {
    run(async |environment| all_arrive(environment, "[::]:0", "127.0.0.1:0", "127.0.0.1").await);
    run(async |environment| all_arrive(environment, "[::]:0", "[::1]:0", "::1").await);
}

#[test]
fn every_destination_of_a_list_gets_all_datagrams() {
    run(async |environment| {
        let hooks = environment.hooks();
        let open = || Socket::open("127.0.0.1:0".parse().unwrap(), &hooks).unwrap();
        let (sender, receivers) = (open(), [open(), open(), open()]);
        let list: Arc<[PeerAddr]> = receivers.iter().map(|to| to.local().into()).collect();
        let mut outbox = Outbox::default();
        for number in 0..EACH_ROUND {
            outbox.push(Transmit { to: To::Each(list.clone()), bytes: datagram(number) });
        }
        outbox.send(Some(&sender), None, &environment.counters).await.unwrap();
        for receiver in &receivers {
            let mut inbox = Inbox::default();
            for number in 0..EACH_ROUND {
                assert_eq!(next(&mut inbox, receiver).await.1, datagram(number));
            }
        }
    });
}

#[test]
fn empty_datagrams_are_sent_and_received() {
    run(async |environment| {
        let hooks = environment.hooks();
        let open = || Socket::open("127.0.0.1:0".parse().unwrap(), &hooks).unwrap();
        let (sender, receiver) = (open(), open());
        let (mut inbox, mut outbox) = (Inbox::default(), Outbox::default());
        for size in [0, 0, 5, 5, 0, 3] {
            outbox.push(to_one(receiver.local(), vec![7; size]));
        }
        outbox.send(Some(&sender), None, &environment.counters).await.unwrap();
        for size in [0, 0, 5, 5, 0, 3] {
            assert_eq!(next(&mut inbox, &receiver).await.1, vec![7; size]);
        }
    });
}

#[test]
fn datagrams_that_cannot_be_sent_are_counted_and_dropped() {
    run(async |environment| {
        let hooks = environment.hooks();
        let open = || Socket::open("127.0.0.1:0".parse().unwrap(), &hooks).unwrap();
        let (sender, receiver) = (open(), open());
        let segments = sender.most_segments();
        let mut outbox = Outbox::default();
        for nowhere in ["192.0.2.7:9", "[::1]:9", "127.0.0.1:0", "0.0.0.0:9"] {
            outbox.push(to_one(nowhere.parse().unwrap(), [1; 9]));
            outbox.push(to_one(nowhere.parse().unwrap(), [1; 9]));
        }
        outbox.push(Transmit { to: To::Group, bytes: vec![2; 9] });
        assert!(!outbox.send(Some(&sender), None, &environment.counters).await.unwrap());
        assert_eq!(crate::test_engine::read(&environment.counters.send_errors), 9);
        outbox.push(to_one(receiver.local(), *b"still here"));
        assert!(!outbox.send(None, None, &environment.counters).await.unwrap());
        assert_eq!(crate::test_engine::read(&environment.counters.send_errors), 10);
        outbox.push(to_one(receiver.local(), *b"still here"));
        assert!(outbox.send(Some(&sender), None, &environment.counters).await.unwrap());
        assert_eq!(next(&mut Inbox::default(), &receiver).await.1, b"still here");
        assert_eq!(
            sender.most_segments(),
            segments,
            "a bad address does not turn off segmentation offload"
        );
    });
}
