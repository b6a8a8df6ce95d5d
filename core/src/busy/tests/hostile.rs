//! Memory in which any process may have written anything: every call returns a plausible result.
#![allow(unsafe_code, reason = "writes arbitrary words into records")]

use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::busy::region::SERVICES;
use crate::busy::report::BusyReport;
use crate::busy::service::Service;
use crate::busy::store::Store;
use crate::busy::{Mode, Recover};
use crate::{BusyConfig, BusyThrottle, ManualClock};

/// Pseudo-random numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        self.0 ^ self.0 >> 33
    }

    fn any_word(&mut self) -> u64 {
        let number = self.next();
        match number % 8 {
            0 => 0,
            1 | 2 => 1,
            3 => number >> 40,
            4 => u64::MAX,
            5 => 1 << (number >> 58),
            _ => number,
        }
    }
}

/// Overwrites records with arbitrary words. Half of them keep their keys, so that their words are
/// used.
fn overwrite_records(store: &Store, numbers: &mut Numbers) {
    for service in store.region.services() {
        let first = std::ptr::from_ref(service).cast::<AtomicU64>();
        // SAFETY: a record consists of atomics only, has this many bytes, and any bytes are a valid
        // value.
        let words =
            unsafe { slice::from_raw_parts(first, size_of::<Service>() / size_of::<u64>()) };
        let start = if numbers.next().is_multiple_of(2) { 2 } else { 0 };
        for word in &words[start..] {
            word.store(numbers.any_word(), Ordering::Relaxed);
        }
    }
}

/// Makes every call, at arbitrary times.
fn call_all(busy: &BusyThrottle, numbers: &mut Numbers, calls: u64) {
    let store = &busy.0.store;
    for _ in 0..calls {
        let number = numbers.next();
        let name = (number % 200).to_le_bytes();
        let now = Duration::from_nanos(numbers.next() >> (number >> 8 & 63));
        let report = BusyReport {
            at_ns: numbers.any_word(),
            answers: number >> 40,
            until_ns: numbers.any_word(),
        };
        store.add_remote_busy(number, numbers.any_word(), report);
        let turn = busy.turn(name, now);
        assert!(turn.wait <= Duration::from_secs(4200) && turn.allowed == turn.wait.is_zero());
        busy.on_ok(name, now);
        let retry_after =
            number.is_multiple_of(3).then(|| Duration::from_nanos(numbers.any_word()));
        busy.on_busy(name, now, retry_after);
        let limits = [turn.limit, busy.limit(name, now)].into_iter().flatten();
        limits.for_each(|limit| assert!((1e-4..=1e7).contains(&limit), "{limit}"));
        assert!((0.0..3e6).contains(&busy.rate(name, now)));
        if number.is_multiple_of(16) {
            busy.forget(name);
            assert_eq!(busy.limit(name, now), None);
            assert!(busy.stats(now).services <= SERVICES as u64);
            store.take_local_busy(number as usize % SERVICES, 10, |name, _| assert_ne!(name, 0));
        }
    }
}

#[test]
fn calls_return_plausible_results_for_any_memory_content() {
    let (seeds, calls) = if cfg!(miri) { (1, 3) } else { (10, 300) };
    let modes = [BusyConfig::new(), BusyConfig::new().mode(Mode::Document(Recover::Value(0.1)))];
    for seed in 0..seeds {
        for config in &modes {
            let busy = BusyThrottle::with_clock(config.clone(), ManualClock::new()).unwrap();
            let mut numbers = Numbers(seed);
            call_all(&busy, &mut numbers, 200.min(calls));
            overwrite_records(&busy.0.store, &mut numbers);
            call_all(&busy, &mut numbers, calls);
            let now = Duration::from_secs(1000);
            for i in 0..100_u64 {
                busy.on_busy(i.to_le_bytes(), now, Some(Duration::from_secs(5)));
            }
            let held = |i: &u64| !busy.should_send(i.to_le_bytes(), now);
            assert!((0..100).filter(held).count() > 90, "services are limited as usual");
        }
    }
}
