//! Compares `charge_ahead` with the arithmetic of Smockron's master, in whole milliseconds.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::time::Duration;

use dthrottle::{ManualClock, Rate, Rule, Throttle};
use proptest::prelude::*;

/// One rule of the original: `next = max(prev, max(timestamp, now) - burst_ms) + interval_ms`.
struct Document {
    interval: i64,
    burst: i64,
    next: i64,
}

impl Document {
    /// The time until the next request is allowed, after a message with this timestamp.
    fn charge(&mut self, now: i64, timestamp: i64) -> i64 {
        let now_or_later = timestamp.max(now);
        self.next = self.next.max(now_or_later - self.burst * self.interval) + self.interval;
        (self.next - now).max(0)
    }
}

fn open(interval: i64, burst: i64) -> (Throttle, ManualClock, Document) {
    let rate = Rate::new(1, Duration::from_millis(interval as u64));
    let clock = ManualClock::new();
    let rule = Rule::new(rate).burst(burst as u64);
    let throttle = Throttle::builder().rule(rule).clock(clock.clone()).build().unwrap();
    (throttle, clock, Document { interval, burst, next: i64::MIN / 2 })
}

fn charge(throttle: &Throttle, ahead: i64) -> i64 {
    let ahead = Duration::from_millis(ahead.max(0) as u64);
    let domain = throttle.domain("default").unwrap();
    domain.charge_ahead("tag", 1, ahead).unwrap().as_millis() as i64
}

/// At a rate of 1/s with a burst of 10.
#[test]
fn the_seventh_message_four_seconds_ahead_is_in_debt() {
    for (ahead, silent) in [(0, 10), (4000, 6)] {
        let (throttle, _, _) = open(1000, 10);
        for _ in 0..silent {
            assert_eq!(charge(&throttle, ahead), 0);
        }
        assert_eq!(charge(&throttle, ahead), 1000, "{ahead} ms ahead");
    }
}

proptest! {
    #[test]
    fn every_debt_equals_that_of_smockron(
        interval in 1..5000_i64,
        burst in 1..50_i64,
        messages in prop::collection::vec((0..3000_i64, -10_000..60_000_i64), 1..100),
    ) {
        let (throttle, clock, mut document) = open(interval, burst);
        let mut now = 0;
        for (pause, ahead) in messages {
            now += pause;
            clock.advance(Duration::from_millis(pause as u64));
            prop_assert_eq!(charge(&throttle, ahead), document.charge(now, now + ahead));
        }
    }
}
