//! Processes that are killed or stopped at a chosen instruction.

use crate::tasks::{numbers, run};

/// A process that is killed before its compare-and-swap has changed nothing. If it is killed after
/// the swap and before it sets the dirty bit, its hits are in an unmarked line. The next hit of
/// that line or a full drain finds them.
#[test]
fn hits_of_a_process_killed_before_the_dirty_bit_are_found() {
    let lines = run(&["die"]);
    // Hits drained before the kill, units charged by the killed check, hits drained at once, hits
    // drained later.
    assert_eq!(numbers(&lines, "before-the-swap"), [[1, 0, 0, 1]]);
    assert_eq!(numbers(&lines, "before-the-bit"), [[1, 1, 0, 2], [1, 1, 0, 1]]);
}

/// A process stops before it claims a slot for a new tag. When it continues, it sees what others
/// took in the meantime.
#[test]
fn a_process_stopped_before_its_claim_does_not_exceed_the_burst() {
    let lines = run(&["stall"]);
    // Checks that passed and units that were charged, of a burst of 100.
    assert_eq!(numbers(&lines, "before-the-search"), [[100, 100]]);
    assert_eq!(numbers(&lines, "before-the-claim"), [[100, 100]]);
}

/// Two processes would choose different slots for one tag. The one that was stopped in between
/// finds the other's slot.
#[test]
fn a_tag_never_gets_two_slots() {
    assert_eq!(numbers(&run(&["twice"]), "twice"), [[50, 50]]);
}
