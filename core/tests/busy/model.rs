//! Several clients and one server that has enough: the live throttle keeps most of what the server
//! can do, the document's arithmetic keeps less, and without any most answers are busy.
//!
//! The live default was chosen by these figures; `figures.rs` makes the table of `docs/busy.md`.

use std::time::Duration;

use dthrottle::busy::{Live, Mode, Recover};

use crate::world::{SecondCounts, Server, World, average};

const RECOVERED: usize = 30;

/// Clients that want more than the server can do, until it can do more than they want: the share
/// of its capacity that was used, the share of busy answers, and the seconds to nine tenths.
pub(crate) fn overload(world: &World, capacity: f64) -> (f64, f64, usize) {
    let capacities = vec![(0.0, capacity), (RECOVERED as f64, world.demand * 2.0)];
    let seconds_counts =
        World { capacity: capacities, seconds: RECOVERED + 12, ..world.clone() }.run();
    let (good, busy) = average(&seconds_counts[..RECOVERED]);
    (good / capacity, busy, seconds_to_recover(&seconds_counts, RECOVERED, world.demand))
}

/// Seconds until nine tenths of the demand are served.
fn seconds_to_recover(seconds_counts: &[SecondCounts], from: usize, demand: f64) -> usize {
    let is_back = |second: &usize| seconds_counts[*second].good as f64 >= 0.9 * demand;
    (from..seconds_counts.len()).find(is_back).map_or(usize::MAX, |second| second - from)
}

pub(crate) fn live() -> Option<Mode> {
    Some(Mode::Live(Live::default()))
}

#[test]
fn the_live_default_keeps_most_of_the_capacity() {
    for (clients, demand, capacity) in
        [(4, 1000.0, 400.0), (2, 300.0, 60.0), (8, 1000.0, 200.0), (16, 2000.0, 1500.0)]
    {
        for seed in 1..=2 {
            let world = World { clients, demand, seed, ..World::new(live()) };
            let (good, busy, seconds) = overload(&world, capacity);
            println!("{clients} clients, {demand} of {capacity}: {good:.2} {busy:.3} {seconds}");
            assert!(good >= 0.7, "{clients} clients, seed {seed}: {good} of the capacity");
            assert!(busy < 0.05, "{clients} clients, seed {seed}: {busy} busy");
            assert!(seconds <= 10, "{clients} clients, seed {seed}: back after {seconds} s");
        }
    }
}

/// A server that counts in seconds of its own says nothing until the second is used up, and then
/// nothing else: the hardest case. The first seconds, at five times the capacity, cost most.
#[test]
fn it_holds_where_the_server_counts_in_seconds() {
    for (clients, demand, capacity) in [
        (1, 1000.0, 200.0),
        (2, 240.0, 120.0),
        (4, 1000.0, 400.0),
        (8, 1000.0, 200.0),
        (16, 1000.0, 400.0),
    ] {
        for seed in 1..=2 {
            let world = World { clients, demand, seed, ..World::new(live()) };
            let world = World { server: Server::Seconds, ..world };
            let (good, busy, seconds) = overload(&world, capacity);
            println!("seconds, {clients} clients: {good:.2} {busy:.3} {seconds}");
            assert!(good >= 0.7, "{clients} clients, seed {seed}: {good} of the capacity");
            assert!(busy < 0.05, "{clients} clients, seed {seed}: {busy} busy");
            assert!(seconds <= 10, "{clients} clients, seed {seed}: back after {seconds} s");
        }
    }
}

/// Clients that are nodes of a cluster, and tell each other.
#[test]
fn it_holds_in_a_cluster() {
    for server in [Server::Even, Server::Seconds] {
        for (clients, demand, capacity) in
            [(2, 300.0, 60.0), (4, 1000.0, 400.0), (8, 1000.0, 200.0), (16, 1000.0, 400.0)]
        {
            for seed in 1..=2 {
                let world = World { clients, demand, seed, server, ..World::new(live()) };
                let (good, busy, seconds) = overload(&World { shares: true, ..world }, capacity);
                println!("{server:?}, cluster of {clients}: {good:.2} {busy:.3} {seconds}");
                assert!(good >= 0.7, "{clients} nodes, seed {seed}: {good} of the capacity");
                assert!(busy < 0.05, "{clients} nodes, seed {seed}: {busy} busy");
                assert!(seconds <= 10, "{clients} nodes, seed {seed}: back after {seconds} s");
            }
        }
    }
}

/// The control: the same figures tell the other arithmetics apart.
#[test]
fn the_document_keeps_less_and_none_is_mostly_busy() {
    let (good, busy, _) = overload(&World::new(None), 400.0);
    assert!(good > 0.99 && busy > 0.55, "none: {good} {busy}");
    let document = |recover| World::new(Some(Mode::Document(recover)));
    let (good, busy, _) = overload(&document(Recover::Rate(3.0)), 400.0);
    println!("document: {good:.2} {busy:.3}");
    assert!(good < 0.5 && busy > 0.1, "document: {good} {busy}");
}

/// When a server is out of order altogether it is left in peace, and then found again.
#[test]
fn it_comes_back_after_an_outage() {
    let capacity = vec![(0.0, 2000.0), (10.0, 0.0), (20.0, 2000.0)];
    let seconds_counts = World { capacity, ..World::new(live()) }.run();
    let asked: u64 = seconds_counts[14..20].iter().map(|counts| counts.busy).sum();
    assert!(asked <= 6000 / 50, "{asked} of 6000 requests to a dead server");
    let seconds = seconds_to_recover(&seconds_counts, 20, 1000.0);
    assert!(seconds <= 10, "back after {seconds} s");
}

/// A server that can suddenly do a tenth of what it could, with and without a pause in its busy
/// answers. Until the rate is halved often enough, at most once a second, most answers are busy.
#[test]
fn it_adapts_to_a_drop_also_with_pauses() {
    for clients in [1, 4] {
        for seed in 1..=2 {
            for (retry_after, most_busy) in [(None, 0.13), (Some(0), 0.13), (Some(1), 0.05)] {
                let world = World { clients, seed, ..World::new(live()) };
                let seconds_counts = World {
                    retry_after: retry_after.map(Duration::from_secs),
                    capacity: vec![(0.0, 2000.0), (5.0, 100.0), (40.0, 2000.0)],
                    seconds: 55,
                    ..world
                }
                .run();
                let ((good, busy), seconds) = (
                    average(&seconds_counts[5..40]),
                    seconds_to_recover(&seconds_counts, 40, 1000.0),
                );
                println!("drop, {clients} clients, {retry_after:?}: {good:.0} {busy:.3} {seconds}");
                assert!(good >= 70.0, "{clients} clients, {retry_after:?}: {good} of 100");
                assert!(busy < most_busy, "{clients} clients, {retry_after:?}: {busy} busy");
                assert!(seconds <= 10, "{clients} clients, {retry_after:?}: after {seconds} s");
            }
        }
    }
}

/// It asks for a pause with every busy answer: everybody keeps to it.
#[test]
fn it_keeps_to_the_pauses_that_it_is_asked_for() {
    let world = World { retry_after: Some(Duration::from_secs(1)), ..World::new(live()) };
    let (good, busy, seconds) = overload(&world, 400.0);
    println!("retry after 1 s: {good:.2} {busy:.3} {seconds}");
    assert!(good >= 0.6 && busy < 0.05 && seconds <= 10, "{good} {busy} {seconds}");
}
