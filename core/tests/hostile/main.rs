//! Hostile bytes, as a fuzzer tries them, but deterministic and on stable Rust: all datagrams of
//! the vectors, and corrupted copies of them.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(clippy::disallowed_methods, reason = "tests may call the operating system")]

mod corruption;
mod datagram;
mod engine;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;

use corruption::Corruption;
use dthrottle::internals::cluster::wire::DatagramKind;
use serde_json::Value as Json;

/// How often each seed is corrupted.
const DAMAGES_PER_SEED: usize = 150;
/// Number of scripts for an engine, and of messages in each.
const SCRIPTS: usize = 40;
const SCRIPT_MESSAGES: usize = 120;
/// The most memory that parsing may allocate for each input byte: a range of two bytes becomes two
/// numbers, those of a snapshot are read twice, and vectors grow by doubling.
const BYTES_PER_BYTE: usize = 32;

/// The system's allocator, with a count of the bytes that each thread allocates.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + layout.size());
        // SAFETY: the caller makes the same promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Every datagram of the vectors, and every body after its kind and flags.
fn seeds() -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/protocol.json");
    let vectors: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut seeds = Vec::new();
    for each in ["written", "later", "dropped"].into_iter().flat_map(|key| vectors[key].as_array())
    {
        for each in each {
            let hex = each["hex"].as_str().unwrap();
            let pairs = (0..hex.len()).step_by(2);
            let mut bytes: Vec<u8> =
                pairs.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
            seeds.push(bytes.clone());
            seeds.extend(datagram::opened(&mut bytes));
        }
    }
    assert!(seeds.len() > 150, "{} seeds", seeds.len());
    seeds
}

#[test]
fn corrupted_datagrams_cause_no_panic() {
    let seeds = seeds();
    let mut corruption = Corruption::new(1);
    for seed in &seeds {
        datagram::try_all(seed);
        for _ in 0..DAMAGES_PER_SEED {
            datagram::try_all(&corruption.apply_to(seed, &seeds));
        }
    }
}

#[test]
fn parsing_corrupted_datagrams_allocates_little_memory() {
    let seeds = seeds();
    let mut corruption = Corruption::new(2);
    for seed in &seeds {
        for _ in 0..DAMAGES_PER_SEED {
            let mut bytes = corruption.apply_to(seed, &seeds);
            let before = ALLOCATED.get();
            datagram::read_only(&mut bytes);
            let allocated = ALLOCATED.get() - before;
            assert!(allocated <= BYTES_PER_BYTE * bytes.len(), "{allocated} for {bytes:02x?}");
        }
    }
}

/// Control: of each kind, some corrupted bodies are still valid and others are not.
#[test]
fn corruption_makes_some_bodies_invalid_but_not_all() {
    let seeds = seeds();
    let mut corruption = Corruption::new(3);
    let (mut good, mut bad) = ([0; DatagramKind::ALL.len()], [0; DatagramKind::ALL.len()]);
    for seed in &seeds {
        for _ in 0..40 {
            let bytes = corruption.apply_to(seed, &seeds);
            let Some((kind, flags, body)) = datagram::as_body(&bytes) else { continue };
            let read = datagram::is_valid(kind, flags, body);
            if read { good[kind as usize - 1] += 1 } else { bad[kind as usize - 1] += 1 }
        }
    }
    for kind in [1, 2, 3, 4, 6, 8, 10] {
        assert!(good[kind - 1] > 10 && bad[kind - 1] > 10, "kind {kind}: {good:?} {bad:?}");
    }
}

/// Runs scripts of valid and corrupted seeds.
#[test]
fn an_engine_survives_corrupted_datagrams() {
    let seeds = seeds();
    let mut corruption = Corruption::new(4);
    for round in 0..SCRIPTS {
        let mut script = Vec::new();
        for message in 0..SCRIPT_MESSAGES {
            let seed = &seeds[corruption.random(seeds.len())];
            let bytes =
                if message % 3 == 0 { seed.clone() } else { corruption.apply_to(seed, &seeds) };
            let Some((kind, flags, body)) = datagram::as_body(&bytes) else { continue };
            let length = u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes();
            script.extend([kind as u8 - 1, flags, length[0], length[1]]);
            script.extend_from_slice(body);
            // Time passes, and the application checks a tag.
            script.extend([12, corruption.random(256) as u8, 0, 0, 10, 0, 0, 1, round as u8]);
            script.extend([11, 0, 0, 1, message as u8]);
            if message % 40 == 0 {
                script.extend([13, corruption.random(256) as u8, 0, 0]);
            }
        }
        engine::try_engine(&script);
    }
}
