//! Threads that count hits, and the exchanging process that drains them: each hit is drained once,
//! or is pending in a marked line.

use super::model::{Act, Actor, Charge, NOW, PAST, explore};
use super::mutation::Mutation;

const TAG: u64 = 2;
const OTHER: u64 = 4;

/// Counts hits of a tag that has a bucket, in a marked or unmarked line.
fn hit(mutation: Mutation, marked: bool, acts: &'static [Act], hits: u64) {
    let prepare = move |actor: &Actor| {
        actor.put(TAG, 0, PAST);
        actor.put(OTHER, 1, NOW + 50);
        if marked {
            actor.update(OTHER, 1, 1);
        }
    };
    explore(mutation, prepare, acts, move |model| {
        assert_eq!(model.hits(), hits + u64::from(marked), "hits");
    });
}

const HIT: Act = |actor| {
    actor.update(TAG, 3, 1);
    actor.update(TAG, 3, 2);
};
const HIT_ONCE: Act = |actor| actor.update(TAG, 3, 1);
const CLAIM: Act = |actor| actor.update(6, 3, 4);
const DRAIN: Act = |actor| {
    actor.drain(true);
    actor.drain(true);
};
const DRAIN_ONCE: Act = |actor| actor.drain(true);
const DRAIN_LATER: Act = |actor| actor.drain(false);

#[test]
fn every_hit_is_drained_once_or_in_a_marked_line() {
    hit(Mutation::None, false, &[HIT, DRAIN], 3);
    hit(Mutation::None, true, &[HIT, DRAIN], 3);
}

#[test]
fn every_hit_of_a_claim_is_drained_once_or_in_a_marked_line() {
    hit(Mutation::None, false, &[CLAIM, DRAIN], 4);
    hit(Mutation::None, true, &[CLAIM, DRAIN], 4);
}

/// The exchanging process is killed, and its successor starts before it sees all of its writes.
#[test]
fn two_exchanging_processes_drain_every_hit_once() {
    hit(Mutation::None, true, &[HIT_ONCE, DRAIN_ONCE, DRAIN_ONCE], 1);
}

#[test]
fn the_line_of_a_hit_that_is_not_due_stays_marked() {
    hit(Mutation::None, true, &[HIT, DRAIN_LATER], 3);
    hit(Mutation::None, true, &[CLAIM, DRAIN_LATER], 4);
}

/// Two claims of one tag in one slot while its hits are drained.
#[test]
fn the_hits_of_two_claims_are_drained_once_or_in_a_marked_line() {
    let acts: &[Act] = &[HIT_ONCE, |actor| actor.update(TAG, 5, 2), DRAIN_ONCE];
    explore(Mutation::None, |_| {}, acts, |model| assert_eq!(model.hits(), 3, "hits"));
}

/// A slot with pending hits is evicted while they are drained.
#[test]
fn the_hits_of_an_evicted_slot_are_counted_once() {
    const EVICT: Act = |actor| _ = actor.charge(Charge { evict: true, ..Charge::new(OTHER, 60) });
    let prepare = |actor: &Actor| {
        for (tag, index) in [(10, 0), (12, 1), (14, 2), (11, 0), (13, 1), (15, 2), (17, 3)] {
            actor.put(tag, index, NOW + 50);
        }
        actor.update(TAG, 3, 2);
    };
    let acts: &[Act] = &[EVICT, DRAIN_ONCE];
    explore(Mutation::None, prepare, acts, |model| assert_eq!(model.hits(), 2, "hits"));
}

#[test]
#[should_panic(expected = "is not marked")]
fn a_missing_mark_is_detected() {
    hit(Mutation::NoMark, false, &[HIT, DRAIN], 3);
}

#[test]
#[should_panic(expected = "is not marked")]
fn a_mark_before_the_swap_is_detected() {
    hit(Mutation::MarkFirst, false, &[HIT_ONCE, DRAIN], 1);
}

#[test]
#[should_panic(expected = "is not marked")]
fn a_mark_without_a_fence_is_detected() {
    hit(Mutation::NoFence, true, &[HIT, DRAIN], 3);
}

#[test]
#[should_panic(expected = "is not marked")]
fn a_drain_before_the_bits_are_cleared_is_detected() {
    hit(Mutation::DrainFirst, false, &[HIT, DRAIN], 3);
}

#[test]
#[should_panic(expected = "is not marked")]
fn a_drain_that_does_not_mark_the_line_again_is_detected() {
    hit(Mutation::NoMarkAgain, true, &[HIT, DRAIN_LATER], 3);
}

#[test]
#[should_panic(expected = "hits")]
fn a_drain_without_comparing_is_detected() {
    hit(Mutation::NoCompare, true, &[HIT, DRAIN], 3);
}
