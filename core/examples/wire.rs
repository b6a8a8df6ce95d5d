//! Benchmark of the wire format: writing and sealing reports, opening and reading them. Prints
//! medians in millions of entries per second.
//!
//! `cargo run --release --package dthrottle --example wire`
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "it measures time")]

use std::hint::black_box;
use std::time::Instant;

use dthrottle::internals::cluster::Origin;
use dthrottle::internals::cluster::wire::{
    DatagramKind, Envelope, Keys, Report, ReportEntry, ReportWriter, Secrets, Section,
};

const ENTRIES: u64 = 1_000_000;
const ROUNDS: usize = 9;

fn main() {
    let sealed = Keys::new(&Secrets::Shared { cluster: "web", secret: b"s", packet_keys: &[] });
    for (name, keys) in [("sealed", sealed), ("unsealed", Keys::unsealed("web"))] {
        for (hits, most) in [("hits below 64", 63), ("hits below 2^20", 1 << 20)] {
            let entries: Vec<ReportEntry> = (0..ENTRIES).map(|n| entry(n, most)).collect();
            let (mut written, mut read) = (Vec::new(), Vec::new());
            let mut datagrams = Vec::new();
            for _ in 0..ROUNDS {
                datagrams = timed(&mut written, || write(&keys, &entries));
                let mut copies = datagrams.clone();
                let sum: u64 = timed(&mut read, || copies.iter_mut().map(|d| open(&keys, d)).sum());
                assert_eq!(sum, entries.iter().map(|entry| entry.hits).sum::<u64>());
            }
            println!(
                "{name:9} {hits:16} {:6} datagrams   written {:5.1} M/s   read {:5.1} M/s",
                datagrams.len(),
                median(written),
                median(read),
            );
        }
    }
}

fn entry(n: u64, most: u64) -> ReportEntry {
    let random = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ReportEntry {
        fingerprint: random & !0xff,
        hits: 1 + (random >> 20) % most,
        saturated: random & 1 == 1,
    }
}

fn write(keys: &Keys, entries: &[ReportEntry]) -> Vec<Vec<u8>> {
    let section = Section { rule: 0xa2a2_ec50_0d5e_9027, quantum: 1, age_us: 100_000 };
    let sender = Origin { node: 1, incarnation: 2 };
    let mut writer = ReportWriter::new();
    let mut datagrams: Vec<Vec<u8>> = Vec::with_capacity(entries.len() / 100);
    let mut datagram = Vec::new();
    let mut send = |writer: &mut ReportWriter| {
        let packet = datagrams.len() as u64 + 1;
        let envelope = Envelope { kind: DatagramKind::Report, flags: 0, sender, packet };
        keys.seal(&envelope, writer.finish(packet, packet, true), &mut datagram);
        datagrams.push(datagram.clone());
        writer.clear(None);
    };
    for entry in entries {
        while !writer.push(&section, *entry) {
            send(&mut writer);
        }
    }
    send(&mut writer);
    datagrams
}

/// Opens and reads a datagram. Returns the sum of its hits.
fn open(keys: &Keys, datagram: &mut [u8]) -> u64 {
    let (envelope, body) = keys.open(datagram).expect("the datagram was sealed with these keys");
    let report = Report::parse(body, envelope.flags).expect("the datagram is a report");
    report.sections().flat_map(|(_, entries)| entries).map(|entry| black_box(entry).hits).sum()
}

/// Runs `work` and adds its speed to the list, in millions of entries per second.
fn timed<T>(list: &mut Vec<f64>, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    list.push(ENTRIES as f64 / start.elapsed().as_secs_f64() / 1e6);
    done
}

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    list[list.len() / 2]
}
