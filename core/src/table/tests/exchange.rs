//! What a table remembers for an exchange: origins, counters, events.

use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;
use crate::cluster::{Origin, Window};

fn exchanged() -> Table {
    let geometry = Geometry::new(2).with_seats();
    Table::in_memory(Heap::new(geometry.bytes()), geometry).unwrap()
}

fn origin(node: u64) -> Origin {
    Origin { node, incarnation: node * 10 }
}

#[test]
fn an_origin_has_one_seat() {
    let table = exchanged();
    assert_eq!(table.seats().count(), 0);
    let seats: Vec<usize> = (1..=5).map(|node| table.take_seat(origin(node)).unwrap()).collect();
    assert_eq!(table.take_seat(origin(3)), Some(seats[2]));
    table.set_window(seats[2], &Window::new(9, vec![(2, 3)]));
    table.set_facts(seats[2], &Facts { received: 7, ..Facts::default() });
    table.free_seat(seats[2]);
    assert_eq!(table.seats().count(), 4);
    let again = table.take_seat(origin(6)).unwrap();
    assert_eq!(again, seats[2], "a free one is used again");
    assert_eq!((table.window(again), table.facts(again)), Default::default());
    let later = Origin { incarnation: 11, ..origin(1) };
    assert_ne!(table.take_seat(later), Some(seats[0]), "another life");
    let nodes: Vec<u64> = table.seats().map(|(_, origin)| origin.node).collect();
    assert_eq!(nodes, [1, 2, 6, 4, 5, 1]);
}

#[test]
#[cfg_attr(miri, ignore = "a million steps; nothing in it is new to Miri")]
fn seats_can_run_out() {
    let table = exchanged();
    assert!((1..=1024).all(|node| table.take_seat(origin(node)).is_some()));
    assert_eq!(table.take_seat(origin(1025)), None);
    assert!(table.take_seat(origin(1024)).is_some(), "known");
    table.free_seat(77);
    assert_eq!(table.take_seat(origin(1025)), Some(77));
}

/// Where there is no exchange there is nothing to take, and nobody minds.
#[test]
fn a_table_without_seats_has_none() {
    let table = empty(2);
    assert_eq!((table.take_seat(origin(1)), table.seats().count()), (None, 0));
    table.set_window(0, &Window::new(9, vec![]));
    table.set_facts(usize::MAX, &Facts::default());
    table.free_seat(5);
    assert_eq!((table.window(0), table.facts(7)), Default::default());
    assert_eq!((Geometry::new(2).seats, exchanged().region.seats().len()), (0, 1024));
}

#[test]
fn a_node_keeps_its_number() {
    let table = exchanged();
    assert_eq!((table.node_id(0), table.node_id(7)), (1, 1));
    let table = exchanged();
    assert_eq!((table.node_id(7), table.node_id(8)), (7, 7));
    table.set_nodes(3);
    table.set_exchanger(5, 6);
    assert_eq!((table.nodes(), table.exchanger()), (3, (5, 6)));
}

#[test]
fn what_is_counted_adds_up() {
    let table = exchanged();
    for counter in 0..COUNTERS + 2 {
        table.add_to_counter(counter, counter as u64);
        table.add_to_counter(counter, 1);
    }
    assert!((0..COUNTERS).all(|counter| table.counter(counter) == counter as u64 + 1));
    assert_eq!((table.counter(COUNTERS), table.counter(usize::MAX)), (0, 0));
}

#[test]
fn events_are_kept_until_others_need_the_room() {
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
fn another_table_takes_it_all_over() {
    let (old, new) = (exchanged(), exchanged());
    old.node_id(7);
    old.set_exchanged(SECOND);
    old.set_slack(5);
    old.take_seat(origin(1));
    let seat = old.take_seat(origin(2)).unwrap();
    let window = Window::new(50, vec![(3, 4), (8, 8)]);
    let facts = Facts { lost: 3, address: "[::1]:5".parse().ok(), ..Facts::default() };
    old.set_window(seat, &window);
    old.set_facts(seat, &facts);
    old.free_seat(0);
    new.copy_from(&old, SECOND);
    assert_eq!((new.node_id(9), new.seats().count()), (7, 1));
    let seat = new.take_seat(origin(2)).unwrap();
    assert_eq!((new.window(seat), new.facts(seat)), (window, facts));
    assert_eq!(new.region.header().slack_ns.load(Ordering::Relaxed), 5);
    empty(2).copy_from(&old, SECOND);
}

/// A reader never sees parts of two windows: what is missing is always told by the top.
#[test]
fn readers_see_whole_windows() {
    let table = exchanged();
    let seat = table.take_seat(origin(1)).unwrap();
    let (done, rounds) = (AtomicBool::new(false), if cfg!(miri) { 20 } else { 50_000 });
    let expected = |top: u64| {
        Window::new(top, (1..=top % 10).map(|n| (top - 30 + 3 * n, top - 30 + 3 * n + 1)).collect())
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for top in 100..100 + rounds {
                table.set_window(seat, &expected(top));
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let window = table.window(seat);
            assert!(window.top() == 0 || window == expected(window.top()), "{window:?}");
        }
    });
    assert_eq!(table.window(seat), expected(99 + rounds));
}
