//! Several clients of one overloaded server: the live throttle uses most of the server's capacity,
//! the document's arithmetic uses less, and without a throttle most responses are busy.
//!
//! The default settings of the live throttle were chosen by these figures. `figures.rs` makes the
//! table of `docs/busy.md`.

use std::time::Duration;

use dthrottle::busy::{Live, Mode, Recover};

use crate::world::{SecondCounts, Server, World, average};

const RECOVERED: usize = 30;

/// Runs clients that want more than the server can serve, until its capacity exceeds their demand.
/// Returns the share of its capacity that was used, the share of busy responses, and the seconds
/// until nine tenths of the demand are served.
pub(crate) fn overload(world: &World, capacity: f64) -> (f64, f64, usize) {
    let capacities = vec![(0.0, capacity), (RECOVERED as f64, world.demand * 2.0)];
    let seconds_counts =
        World { capacity: capacities, seconds: RECOVERED + 12, ..world.clone() }.run();
    let (good, busy) = average(&seconds_counts[..RECOVERED]);
    (good / capacity, busy, seconds_to_recover(&seconds_counts, RECOVERED, world.demand))
}

/// Returns the seconds until nine tenths of the demand are served.
fn seconds_to_recover(seconds_counts: &[SecondCounts], from: usize, demand: f64) -> usize {
    let is_back = |second: &usize| seconds_counts[*second].good as f64 >= 0.9 * demand;
    (from..seconds_counts.len()).find(is_back).map_or(usize::MAX, |second| second - from)
}

pub(crate) fn live() -> Option<Mode> {
    Some(Mode::Live(Live::default()))
}

#[test]
fn the_live_default_uses_most_of_the_capacity() {
    for (clients, demand, capacity) in
        [(4, 1000.0, 400.0), (2, 300.0, 60.0), (8, 1000.0, 200.0), (16, 2000.0, 1500.0)]
    {
        for seed in 1..=2 {
            let world = World { clients, demand, seed, ..World::new(live()) };
            let (good, busy, seconds) = overload(&world, capacity);
            println!("{clients} clients, {demand} of {capacity}: {good:.2} {busy:.3} {seconds}");
            assert!(good >= 0.7, "{clients} clients, seed {seed}: {good} of the capacity");
            assert!(busy < 0.05, "{clients} clients, seed {seed}: busy share {busy}");
            assert!(seconds <= 10, "{clients} clients, seed {seed}: recovered after {seconds} s");
        }
    }
}

/// The hardest case is a server that counts in whole seconds of its own: it serves all requests
/// until the second is used up, and then answers busy. The first seconds, at five times the
/// capacity, are the worst.
#[test]
fn the_live_default_uses_most_of_a_server_that_counts_in_whole_seconds() {
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
            assert!(busy < 0.05, "{clients} clients, seed {seed}: busy share {busy}");
            assert!(seconds <= 10, "{clients} clients, seed {seed}: recovered after {seconds} s");
        }
    }
}

#[test]
fn the_live_default_uses_most_of_the_capacity_in_a_cluster() {
    for server in [Server::Even, Server::Seconds] {
        for (clients, demand, capacity) in
            [(2, 300.0, 60.0), (4, 1000.0, 400.0), (8, 1000.0, 200.0), (16, 1000.0, 400.0)]
        {
            for seed in 1..=2 {
                let world = World { clients, demand, seed, server, ..World::new(live()) };
                let (good, busy, seconds) = overload(&World { shares: true, ..world }, capacity);
                println!("{server:?}, cluster of {clients}: {good:.2} {busy:.3} {seconds}");
                assert!(good >= 0.7, "{clients} nodes, seed {seed}: {good} of the capacity");
                assert!(busy < 0.05, "{clients} nodes, seed {seed}: busy share {busy}");
                assert!(seconds <= 10, "{clients} nodes, seed {seed}: recovered after {seconds} s");
            }
        }
    }
}

/// Negative control. Without a throttle most responses are busy. Mode `document` uses less of the
/// capacity.
#[test]
fn other_modes_give_worse_figures_than_the_live_mode() {
    let (good, busy, _) = overload(&World::new(None), 400.0);
    assert!(good > 0.99 && busy > 0.55, "none: {good} {busy}");
    let document = |recover| World::new(Some(Mode::Document(recover)));
    let (good, busy, _) = overload(&document(Recover::Rate(3.0)), 400.0);
    println!("document: {good:.2} {busy:.3}");
    assert!(good < 0.5 && busy > 0.1, "document: {good} {busy}");
}

/// During an outage the server gets few requests, and after it the clients recover.
#[test]
fn clients_recover_after_an_outage() {
    let capacity = vec![(0.0, 2000.0), (10.0, 0.0), (20.0, 2000.0)];
    let seconds_counts = World { capacity, ..World::new(live()) }.run();
    let requests: u64 = seconds_counts[14..20].iter().map(|counts| counts.busy).sum();
    assert!(requests <= 6000 / 50, "{requests} of 6000 requests during the outage");
    let seconds = seconds_to_recover(&seconds_counts, 20, 1000.0);
    assert!(seconds <= 10, "recovered after {seconds} s");
}

/// The capacity of the server suddenly drops to a tenth, with and without a pause in its busy
/// responses. Until the rate has been halved often enough, at most once per second, most responses
/// are busy.
#[test]
fn clients_adapt_to_a_drop_of_the_capacity() {
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
                assert!(busy < most_busy, "{clients} clients, {retry_after:?}: busy share {busy}");
                assert!(seconds <= 10, "{clients} clients, {retry_after:?}: back in {seconds} s");
            }
        }
    }
}

#[test]
fn clients_respect_pauses_and_use_most_of_the_capacity() {
    let world = World { retry_after: Some(Duration::from_secs(1)), ..World::new(live()) };
    let (good, busy, seconds) = overload(&world, 400.0);
    println!("retry after 1 s: {good:.2} {busy:.3} {seconds}");
    assert!(good >= 0.6 && busy < 0.05 && seconds <= 10, "{good} {busy} {seconds}");
}
