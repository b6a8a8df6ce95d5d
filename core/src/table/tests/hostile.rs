//! Tables in memory that holds arbitrary bytes: every call must return.
#![allow(unsafe_code, reason = "unsafe code is allowed here; see ARCHITECTURE.md")]

use std::ptr::NonNull;
use std::sync::Arc;

use super::*;
use crate::cluster::{Origin, Window};

/// Fills memory with words of all kinds, some of which look like a rule.
fn garbage(geometry: Geometry, seed: u64) -> Heap {
    let heap = Heap::new(geometry.bytes());
    let mut numbers = Numbers(seed);
    let words = heap.base().cast::<u64>();
    for i in 0..geometry.bytes() / size_of::<u64>() {
        let word = any_word(&mut numbers);
        // SAFETY: inside the memory, which nothing else uses yet.
        let pointer = unsafe { words.add(i) };
        // SAFETY: as above, and aligned to more than a word.
        unsafe { pointer.write(word) };
    }
    heap
}

fn any_word(numbers: &mut Numbers) -> u64 {
    let number = numbers.next();
    match number % 8 {
        0 => 0,
        1 | 2 => 1,
        3 => number >> 40,
        4 => u64::MAX,
        5 => 1 << (number >> 58),
        _ => number,
    }
}

fn use_all(table: &Table, other: &Table, seed: u64, steps: u64) {
    let mut numbers = Numbers(seed);
    let scales = [per_second(1), per_second(1 << 20)];
    // A search waits for an entry that has our ID and is not ready. That takes too long under Miri.
    let first_id = if cfg!(miri) { 3 << 50 } else { 0 };
    for (id, scale) in (first_id..).zip(&scales) {
        if let Some(index) = table.rule_index(id, scale) {
            table.rule(index);
        }
    }
    for step in 0..steps {
        let number = numbers.next();
        let fingerprint = if number.is_multiple_of(4) { 0 } else { numbers.next() };
        let key = Key { fingerprint, rule: 1 + numbers.next() as u16 % 4095 };
        let scale = &scales[step as usize % 2];
        let now = numbers.next() >> (number % 64);
        table.prefetch(key);
        let seen = table.read(key, scale, now);
        assert!(seen <= crate::limit::bucket::MAX_TAT);
        let hits = numbers.next() as i64 >> (number >> 8 & 63);
        let units = number >> 20;
        let step = |tat| BucketUpdate { tat: scale.charge(tat, now, units), hits, answer: tat };
        let answer = table.update(key, scale, now, Some(now), step);
        assert!(answer.is_none_or(|tat| tat == seen));
        let step = |tat| BucketUpdate { tat: tat ^ 1, hits, answer: () };
        table.update_at_home(key, scale, now, step);
        if number.is_multiple_of(32) {
            table.set_exchanged(now);
            table.drain(number.is_multiple_of(64), |bucket| bucket.hits % 3 > 0, |_| {});
        }
    }
    exchange_all(table, &mut numbers);
    let now = numbers.next();
    assert!(table.live(now) <= table.slots());
    other.copy_from(table, now);
    let mut hits = 0;
    other.drain(true, |_| true, |bucket| hits += bucket.hits);
    assert!(hits <= MAX_PENDING * other.slots() as u64);
}

/// Everything that an exchange reads is consistent, and can be overwritten.
fn exchange_all(table: &Table, numbers: &mut Numbers) {
    let peer_slots: Vec<_> = table.peer_slots().collect();
    let made_up = [0, usize::MAX, numbers.next() as usize % 2000];
    for peer_slot in peer_slots.iter().map(|(peer_slot, _)| *peer_slot).chain(made_up) {
        let window = table.window(peer_slot);
        let mut end = 0;
        for (first, last) in window.missing() {
            assert!(end < *first && first <= last && *last <= window.top(), "{window:?}");
            end = *last;
        }
        table.peer_status(peer_slot);
        let (top, first) = (numbers.next() >> 1, numbers.next() >> 2);
        table.set_window(peer_slot, &Window::new(top, vec![(first.min(top), top)]));
        if peer_slot < table.region.peer_slots().len() {
            assert_eq!(table.window(peer_slot).top(), top);
        }
    }
    let origin = Origin { node: numbers.next(), incarnation: numbers.next() };
    if let Some(peer_slot) = table.claim_peer_slot(origin) {
        assert_eq!((table.window(peer_slot), table.peer_status(peer_slot)), Default::default());
    }
    table.node_id(numbers.next());
    table.exchanger();
    table.add_to_counter(0, u64::MAX);
    for _ in 0..3 {
        table.push_event(RawEvent { at_ns: 7, ..RawEvent::default() });
        let events = table.events_since(0);
        assert!(events.is_sorted_by(|a, b| a.number < b.number));
    }
    // The number before the first event may have been the greatest one.
    assert!(table.events_since(0).iter().any(|event| event.at_ns == 7));
}

#[test]
fn a_table_of_random_bytes_answers_every_call() {
    let (tables, steps) = if cfg!(miri) { (1, 60) } else { (40, 500) };
    for seed in 0..tables {
        let (small, big) = (Geometry::new(2 + seed as usize % 4), Geometry::new(70));
        let table = |geometry, seed| Table::in_memory(garbage(geometry, seed), geometry).unwrap();
        use_all(&table(small, seed), &table(big, !seed), seed, steps);
        if seed.is_multiple_of(8) {
            let (small, big) = (small.with_peer_slots(), big.with_peer_slots());
            use_all(&table(small, seed), &table(big, !seed), seed, steps / 10);
        }
    }
}

/// Memory of the right size is a table only if its header says so.
#[test]
fn random_bytes_are_not_opened_as_a_table() {
    let geometry = Geometry::new(5);
    let tables = if cfg!(miri) { 1 } else { 20 };
    for seed in 0..tables {
        let opened = Region::existing(Box::new(garbage(geometry, seed)));
        assert!(matches!(opened, Err(RegionError::NotATable)));
    }
    assert!(matches!(Region::existing(Box::new(Heap::new(64))), Err(RegionError::NotATable)));
    let short = Heap::new(geometry.bytes() - PAGE);
    assert!(Table::in_memory(short, geometry).is_none(), "too short");
}

#[test]
fn a_created_region_is_opened_with_its_parameters() {
    #[derive(Clone)]
    struct Shared(Arc<Heap>);
    // SAFETY: the memory is the heap's, which makes the same promises and lives as long.
    unsafe impl Memory for Shared {
        fn base(&self) -> NonNull<u8> {
            self.0.base()
        }

        fn len(&self) -> usize {
            self.0.len()
        }
    }
    let geometry = Geometry::new(5);
    let memory = Shared(Arc::new(Heap::new(geometry.bytes())));
    let existing = || Region::existing(Box::new(memory.clone()));
    let params = TableParams { zero_ns: 1, key: [2, 3], boot: [4, 5] };
    let made = Region::create(Box::new(memory.clone()), geometry, &params).unwrap();
    let opened = existing().unwrap_or_else(|_| panic!("the region can be opened"));
    assert_eq!((opened.params(), opened.geometry()), (params, geometry));
    let header = made.header();
    for lines in [0, 1, 500, 1 << 38, 1 << 39, u64::MAX] {
        header.lines.store(lines, Ordering::Relaxed);
        assert!(matches!(existing(), Err(RegionError::NotATable)), "{lines} lines");
    }
    header.lines.store(5, Ordering::Relaxed);
    assert!(existing().is_ok());
    header.peer_slots.store(1024, Ordering::Relaxed);
    assert!(matches!(existing(), Err(RegionError::NotATable)), "too short for origins");
    header.layout.store(9, Ordering::Relaxed);
    assert!(matches!(existing(), Err(RegionError::Layout { found: 9, .. })));
}
