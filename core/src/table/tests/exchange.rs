//! The state of the exchange in a table: origins, counters, events.

use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;
use crate::cluster::{Origin, Window};

fn exchanged() -> Table {
    let geometry = Geometry::new(2).with_peer_slots();
    Table::in_memory(Heap::new(geometry.bytes()), geometry).unwrap()
}

fn origin(node: u64) -> Origin {
    Origin { node, incarnation: node * 10 }
}

#[test]
fn an_origin_has_one_peer_slot() {
    let table = exchanged();
    assert_eq!(table.peer_slots().count(), 0);
    let peer_slots: Vec<usize> =
        (1..=5).map(|node| table.claim_peer_slot(origin(node)).unwrap()).collect();
    assert_eq!(table.claim_peer_slot(origin(3)), Some(peer_slots[2]));
    table.set_window(peer_slots[2], &Window::new(9, vec![(2, 3)]));
    table.set_peer_status(peer_slots[2], &PeerStatus { received: 7, ..PeerStatus::default() });
    table.free_peer_slot(peer_slots[2]);
    assert_eq!(table.peer_slots().count(), 4);
    let again = table.claim_peer_slot(origin(6)).unwrap();
    assert_eq!(again, peer_slots[2], "a free one is used again");
    assert_eq!((table.window(again), table.peer_status(again)), Default::default());
    let later = Origin { incarnation: 11, ..origin(1) };
    assert_ne!(
        table.claim_peer_slot(later),
        Some(peer_slots[0]),
        "another incarnation has its own slot"
    );
    let nodes: Vec<u64> = table.peer_slots().map(|(_, origin)| origin.node).collect();
    assert_eq!(nodes, [1, 2, 6, 4, 5, 1]);
}

#[test]
#[cfg_attr(miri, ignore = "a million steps; nothing in it is new to Miri")]
fn claiming_fails_when_all_peer_slots_are_taken() {
    let table = exchanged();
    assert!((1..=1024).all(|node| table.claim_peer_slot(origin(node)).is_some()));
    assert_eq!(table.claim_peer_slot(origin(1025)), None);
    assert!(table.claim_peer_slot(origin(1024)).is_some(), "known origins keep their slot");
    table.free_peer_slot(77);
    assert_eq!(table.claim_peer_slot(origin(1025)), Some(77));
}

/// A table without exchange ignores calls about peers.
#[test]
fn a_table_without_exchange_has_no_peer_slots() {
    let table = empty(2);
    assert_eq!((table.claim_peer_slot(origin(1)), table.peer_slots().count()), (None, 0));
    table.set_window(0, &Window::new(9, vec![]));
    table.set_peer_status(usize::MAX, &PeerStatus::default());
    table.free_peer_slot(5);
    assert_eq!((table.window(0), table.peer_status(7)), Default::default());
    assert_eq!((Geometry::new(2).peer_slots, exchanged().region.peer_slots().len()), (0, 1024));
}

#[test]
fn a_node_keeps_its_id() {
    let table = exchanged();
    assert_eq!((table.node_id(0), table.node_id(7)), (1, 1));
    let table = exchanged();
    assert_eq!((table.node_id(7), table.node_id(8)), (7, 7));
    table.set_nodes(3);
    table.set_exchanger(5, 6);
    assert_eq!((table.nodes(), table.exchanger()), (3, (5, 6)));
}

#[test]
fn counters_add_up_and_unknown_ones_are_ignored() {
    let table = exchanged();
    for counter in 0..COUNTERS + 2 {
        table.add_to_counter(counter, counter as u64);
        table.add_to_counter(counter, 1);
    }
    assert!((0..COUNTERS).all(|counter| table.counter(counter) == counter as u64 + 1));
    assert_eq!((table.counter(COUNTERS), table.counter(usize::MAX)), (0, 0));
}

#[test]
fn the_ring_keeps_the_latest_64_events() {
    let table = exchanged();
    let numbers = |since| table.events_since(since).iter().map(|e| e.number).collect::<Vec<_>>();
    assert_eq!(numbers(0), [] as [u64; 0]);
    for at_ns in 1..=3 {
        table.push_event(RawEvent { at_ns, kind: 2, node: 3, value: 4, number: 99 });
    }
    let last = RawEvent { at_ns: 3, kind: 2, node: 3, value: 4, number: 3 };
    assert_eq!((numbers(1), table.events_since(2)), (vec![2, 3], vec![last]));
    (4..=100).for_each(|_| table.push_event(RawEvent::default()));
    assert_eq!(numbers(0), (37..=100).collect::<Vec<_>>());
    assert_eq!(numbers(98), [99, 100]);
}

#[test]
fn a_copied_table_keeps_the_state_of_the_exchange() {
    let (old, new) = (exchanged(), exchanged());
    old.node_id(7);
    old.set_exchanged(SECOND);
    old.set_slack(5);
    old.claim_peer_slot(origin(1));
    let peer_slot = old.claim_peer_slot(origin(2)).unwrap();
    let window = Window::new(50, vec![(3, 4), (8, 8)]);
    let status = PeerStatus { lost: 3, address: "[::1]:5".parse().ok(), ..PeerStatus::default() };
    old.set_window(peer_slot, &window);
    old.set_peer_status(peer_slot, &status);
    old.free_peer_slot(0);
    new.copy_from(&old, SECOND);
    assert_eq!((new.node_id(9), new.peer_slots().count()), (7, 1));
    let peer_slot = new.claim_peer_slot(origin(2)).unwrap();
    assert_eq!((new.window(peer_slot), new.peer_status(peer_slot)), (window, status));
    assert_eq!(new.region.header().slack_ns.load(Ordering::Relaxed), 5);
    empty(2).copy_from(&old, SECOND);
}

/// The missing ranges that a reader gets always belong to the top that it gets.
#[test]
fn readers_never_see_a_mix_of_two_windows() {
    let table = exchanged();
    let peer_slot = table.claim_peer_slot(origin(1)).unwrap();
    let (done, rounds) = (AtomicBool::new(false), if cfg!(miri) { 20 } else { 50_000 });
    let expected = |top: u64| {
        Window::new(top, (1..=top % 10).map(|n| (top - 30 + 3 * n, top - 30 + 3 * n + 1)).collect())
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for top in 100..100 + rounds {
                table.set_window(peer_slot, &expected(top));
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let window = table.window(peer_slot);
            assert!(window.top() == 0 || window == expected(window.top()), "{window:?}");
        }
    });
    assert_eq!(table.window(peer_slot), expected(99 + rounds));
}
