//! Properties that hold for every sequence of calls at any times.

use std::time::Duration;

use dthrottle::BusyConfig;
use dthrottle::busy::{BusyThrottle, Live, Mode, Recover};
use proptest::prelude::*;

use crate::{at, throttle};

#[derive(Clone, Copy, Debug)]
enum Call {
    Send,
    Busy(Option<Duration>),
    Ok,
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        8 => Just(Call::Send),
        2 => Just(Call::Busy(None)),
        1 => (0_u64..20_000).prop_map(|ms| Call::Busy(Some(Duration::from_millis(ms)))),
        4 => Just(Call::Ok),
    ]
}

fn mode() -> impl Strategy<Value = Mode> {
    let live = (0.1..0.95, 0.1..1.0, 0.0..1.0, 0.0..10.0, 1.1..10.0);
    prop_oneof![
        Just(Mode::Live(Live::default())),
        live.prop_map(|(cut, near, step, patience, growth)| {
            Mode::Live(Live { cut, near, step, patience, growth })
        }),
        (0.1..10.0).prop_map(|rate| Mode::Document(Recover::Rate(rate))),
        (0.1..500.0).prop_map(|value| Mode::Document(Recover::Value(value))),
    ]
}

/// Calls, each with the milliseconds since the previous one. Time sometimes goes back.
fn calls() -> impl Strategy<Value = Vec<(i64, Call)>> {
    let pause = prop_oneof![20 => 0_i64..50, 2 => 0_i64..5000, 1 => -100_000_i64..0];
    prop::collection::vec((pause, call()), 1..400)
}

fn run(busy: &BusyThrottle, calls: &[(i64, Call)]) -> u64 {
    let mut now = 0_i64;
    for (pause, call) in calls {
        now = now.saturating_add(*pause).max(0);
        let time = Duration::from_millis(now as u64);
        match call {
            Call::Send => drop(busy.turn("a", time)),
            Call::Busy(retry_after) => busy.on_busy("a", time, *retry_after),
            Call::Ok => busy.on_ok("a", time),
        }
    }
    now as u64
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_limit_is_never_below_the_floor(mode in mode(), calls in calls(), floor in 0.001..10.0) {
        let busy = throttle(BusyConfig::new().mode(mode).floor(floor));
        let now = run(&busy, &calls);
        for after in [0, 1, 999, 1000, 5000, 50_000] {
            if let Some(limit) = busy.limit("a", Duration::from_millis(now + after)) {
                // Limits are stored as `f32`.
                prop_assert!(limit >= floor * 0.999_999, "{limit} < {floor}");
            }
        }
    }

    /// After any calls, a client that waits as long as it is told may send within a bounded time.
    #[test]
    fn a_client_that_waits_may_send(mode in mode(), calls in calls()) {
        let busy = throttle(BusyConfig::new().mode(mode));
        let mut now = Duration::from_millis(run(&busy, &calls));
        let end = now + at(220.0);
        let mut turn = busy.turn("a", now);
        while !turn.allowed && now < end {
            prop_assert!(turn.wait > Duration::ZERO, "{turn:?}");
            now += turn.wait;
            turn = busy.turn("a", now);
        }
        prop_assert!(turn.allowed, "{turn:?}");
    }

    #[test]
    fn a_limit_disappears_without_busy_responses(calls in calls(), seed in 0_u64..1000) {
        let busy = throttle(BusyConfig::new());
        let now = run(&busy, &calls) + seed;
        // Longer than the longest pause, the time to recover, and the jump of a clock.
        let later = Duration::from_millis(now) + at(240.0);
        prop_assert!(busy.should_send("a", later));
        prop_assert_eq!(busy.limit("a", later), None);
    }

    #[test]
    fn no_more_requests_than_the_limit_are_allowed_after_a_cut(rate in 10_u32..2000, more in 1_u32..5) {
        let busy = throttle(BusyConfig::new());
        crate::passed(&busy, "a", 0.0, rate);
        busy.on_busy("a", at(1.0), None);
        let limit = busy.limit("a", at(1.0)).unwrap();
        let passed = f64::from(crate::passed(&busy, "a", 1.0, rate * more));
        // None for 0.3 s, the limit for 0.4 s, and for 0.3 s a rate that multiplies by 4 per
        // second.
        let most = limit * (0.4 + (4_f64.powf(0.3) - 1.0) / 4_f64.ln());
        prop_assert!(passed <= (most + 0.05 * limit) * 1.02 + 2.0, "{passed} of {most}");
        prop_assert!(passed >= most * 0.9 - 2.0, "{passed} of {most}");
    }
}
