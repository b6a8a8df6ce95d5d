//! Processes that die or stop at a chosen instruction.

use crate::tasks::{numbers, run};

/// A process that dies before its compare-and-swap has done nothing. One that dies after it and
/// before the dirty bit leaves hits that no exchanger is told of: the next hit of the line brings
/// them back, and so does a look at everything.
#[test]
fn a_death_between_swap_and_dirty_bit_is_healed() {
    let lines = run(&["die"]);
    // Hits reported before the death, units charged by it, hits found at once and later.
    assert_eq!(numbers(&lines, "before-the-swap"), [[1, 0, 0, 1]]);
    assert_eq!(numbers(&lines, "before-the-bit"), [[1, 1, 0, 2], [1, 1, 0, 1]]);
}

/// A process that stops for a while before it claims a slot for a new tag finds, when it goes on,
/// what others have taken meanwhile.
#[test]
fn a_stall_before_a_claim_lets_nothing_more_pass() {
    let lines = run(&["stall"]);
    // How many passed, and how many were charged, of a burst of 100.
    assert_eq!(numbers(&lines, "before-the-search"), [[100, 100]]);
    assert_eq!(numbers(&lines, "before-the-claim"), [[100, 100]]);
}

/// Two processes that would choose different slots for one tag: the one that stopped in between
/// finds the other's.
#[test]
fn a_tag_never_gets_two_slots() {
    assert_eq!(numbers(&run(&["twice"]), "twice"), [[50, 50]]);
}
