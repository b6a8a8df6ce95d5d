//! Reports as one word in memory.

use crate::busy::report::{BusyReport, PendingBusyReport};

const NAME: u64 = 0xabcd_0000_0000_1234;
const ONE: BusyReport = BusyReport { at_ns: 7_000_000, answers: 1, until_ns: 0 };

#[test]
fn reports_of_one_service_add_up_and_are_taken_once() {
    let word = PendingBusyReport::default();
    assert_eq!(word.take(|| NAME), None);
    word.add(NAME, ONE);
    word.add(NAME, BusyReport { at_ns: 5_000_000, answers: 254, until_ns: 9_000_000_001 });
    word.add(NAME, ONE);
    let all = BusyReport { at_ns: 7_000_000, answers: 255, until_ns: 9_000_001_000 };
    assert_eq!((word.take(|| NAME), word.take(|| NAME)), (Some(all), None));
}

#[test]
fn numbers_that_do_not_fit_into_a_word_are_limited() {
    let word = PendingBusyReport::default();
    let most = BusyReport { at_ns: u64::MAX, answers: u64::MAX, until_ns: u64::MAX };
    word.add(u64::MAX, most);
    word.add(u64::MAX, most);
    let taken = word.take(|| u64::MAX).unwrap();
    // The greatest times that fit.
    assert_eq!((taken.at_ns, taken.answers), (((1 << 48) - 1) * 1000, 255));
    assert_eq!(taken.until_ns, u64::MAX);
    let none = BusyReport { at_ns: 0, answers: 0, until_ns: 0 };
    word.add(0, none);
    assert_eq!(word.take(|| 0), Some(BusyReport { answers: 1, ..none }));
}

#[test]
fn a_report_of_another_service_is_dropped() {
    let word = PendingBusyReport::default();
    word.add(NAME, ONE);
    assert_eq!(word.take(|| NAME + 1), None);
    word.add(NAME, ONE);
    word.add(NAME + 1, ONE);
    assert_eq!(word.take(|| NAME + 1), Some(ONE), "the earlier one is replaced");
}
