//! Compares decisions with those of the `governor` crate, for one rule whose interval is a whole
//! number of nanoseconds.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::num::NonZeroU32;
use std::time::Duration;

use dthrottle::{CheckOptions, ManualClock, Rule, Throttle};
use governor::clock::FakeRelativeClock;
use governor::{Quota, RateLimiter};
use proptest::prelude::*;

/// Counts per second that divide a billion.
const COUNTS: [u32; 10] = [1, 2, 5, 10, 64, 100, 1000, 50_000, 1_000_000, 10_000_000];

fn agree(count: u32, ours: u32, theirs: u32, calls: &[(u64, u32)]) -> Result<(), String> {
    let quota = Quota::per_second(NonZeroU32::new(count).unwrap())
        .allow_burst(NonZeroU32::new(theirs).unwrap());
    let their_clock = FakeRelativeClock::default();
    let governor = RateLimiter::direct_with_clock(quota, their_clock.clone());
    let clock = ManualClock::new();
    let rule = Rule::per_second(count.into()).burst(ours.into());
    let throttle = Throttle::builder().rule(rule).clock(clock.clone()).build().unwrap();
    for (pause, cost) in calls {
        clock.advance(Duration::from_nanos(*pause));
        their_clock.advance(Duration::from_nanos(*pause));
        let cost = (*cost).min(ours.min(theirs));
        let ours = throttle.allow_with("tag", CheckOptions::cost(cost.into())).unwrap();
        let theirs = matches!(governor.check_n(NonZeroU32::new(cost).unwrap()), Ok(Ok(())));
        if ours != theirs {
            return Err(format!("cost {cost}: {ours} by dthrottle, {theirs} by governor"));
        }
    }
    Ok(())
}

fn calls() -> impl Strategy<Value = Vec<(u64, u32)>> {
    prop::collection::vec((prop_oneof![Just(0), 0..50_000_000_u64], 1..5_u32), 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn dthrottle_and_governor_make_the_same_decisions(
        count in prop::sample::select(&COUNTS[..]), burst in 1..50_u32, calls in calls()
    ) {
        prop_assert_eq!(agree(count, burst, burst, &calls), Ok(()));
    }
}

#[test]
fn a_different_burst_is_detected() {
    let calls = [(0, 1); 12];
    assert_eq!(agree(1, 10, 10, &calls), Ok(()));
    assert!(agree(1, 11, 10, &calls).is_err());
}
