//! In the mode of the document, the throttle allows the requests that the document's tables
//! contain.

use dthrottle::busy::{NO_LIMIT, Recover};

use crate::{document, passed};

/// The first phase of a table: in every second the number of allowed requests, and the limit.
/// `busy_in` says in which seconds the service is busy.
fn phase(recover: Recover, busy_in: impl Fn(u32) -> bool) -> Vec<(u32, f64)> {
    let busy = document(recover);
    let mut seconds = Vec::new();
    for second in 1..=9 {
        let from = f64::from(second);
        let limit = busy.limit("b", crate::at(from)).unwrap_or(NO_LIMIT);
        let through = passed(&busy, "b", from, 5000);
        let answers = if busy_in(second) { through.min(3000) } else { 0 };
        for _ in 0..answers {
            busy.on_busy("b", crate::at(from + 0.999_99), None);
        }
        seconds.push((through, limit.trunc()));
    }
    seconds
}

#[test]
fn a_service_that_is_always_busy_gives_the_table_steady() {
    let zero = (0, 0.0);
    let by_rate = phase(Recover::Rate(3.0), |_| true);
    let start = (5000, NO_LIMIT);
    assert_eq!(by_rate, [start, (38, 38.0), zero, zero, zero, zero, zero, zero, zero]);
    let by_value = phase(Recover::Value(200.0), |_| true);
    let flap = (200, 200.0);
    assert_eq!(by_value, [start, (9, 9.0), zero, flap, zero, flap, zero, flap, zero]);
}

#[test]
fn a_service_that_is_busy_every_third_second_gives_the_table_flappy() {
    let third = |second| second % 3 == 0;
    let (zero, start) = ((0, 0.0), (5000, NO_LIMIT));
    let by_rate = phase(Recover::Rate(3.0), third);
    let rises = [start, start, start, (38, 38.0), (152, 152.0), (610, 610.0), zero, zero, zero];
    assert_eq!(by_rate, rises);
    let by_value = phase(Recover::Value(200.0), third);
    let rises = [
        start,
        start,
        start,
        (9, 9.0),
        (209, 209.0),
        (409, 409.0),
        zero,
        (200, 200.0),
        (400, 400.0),
    ];
    assert_eq!(by_value, rises);
}
