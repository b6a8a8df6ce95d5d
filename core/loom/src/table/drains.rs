//! Threads that count hits against the exchanger that takes them: each hit is handed over once,
//! or is pending in a line that is marked.

use super::mistake::Mistake;
use super::model::{Act, Model, NOW, PAST, explore};

const TAG: u64 = 2;
const OTHER: u64 = 4;

/// Counts hits of a tag that is there, in a line that is marked or not.
fn hit(mistake: Mistake, marked: bool, acts: &'static [Act], hits: u64) {
    let prepare = move |model: &Model| {
        model.put(TAG, 0, PAST);
        model.put(OTHER, 1, NOW + 50);
        if marked {
            model.update(OTHER, 1, 1);
        }
    };
    explore(mistake, prepare, acts, move |model| {
        let sum = model.handed() + model.pending();
        assert_eq!(sum, hits + u64::from(marked), "hits");
    });
}

const HIT: Act = |model| {
    model.update(TAG, 3, 1);
    model.update(TAG, 3, 2);
};
const HIT_ONCE: Act = |model| model.update(TAG, 3, 1);
const CLAIM: Act = |model| model.update(6, 3, 4);
const DRAIN: Act = |model| {
    model.drain(true);
    model.drain(true);
};
const DRAIN_ONCE: Act = |model| model.drain(true);
const DRAIN_LATER: Act = |model| model.drain(false);

#[test]
fn every_hit_is_handed_over_once_or_marked() {
    hit(Mistake::None, false, &[HIT, DRAIN], 3);
    hit(Mistake::None, true, &[HIT, DRAIN], 3);
}

#[test]
fn every_hit_of_a_claim_is_handed_over_once_or_marked() {
    hit(Mistake::None, false, &[CLAIM, DRAIN], 4);
    hit(Mistake::None, true, &[CLAIM, DRAIN], 4);
}

/// The exchanger dies, and its successor begins before the last word of it is seen.
#[test]
fn two_exchangers_hand_over_every_hit_once() {
    hit(Mistake::None, true, &[HIT_ONCE, DRAIN_ONCE, DRAIN_ONCE], 1);
}

#[test]
fn a_hit_that_is_not_due_stays_marked() {
    hit(Mistake::None, true, &[HIT, DRAIN_LATER], 3);
    hit(Mistake::None, true, &[CLAIM, DRAIN_LATER], 4);
}

/// Two claims of one tag, one of which is folded while its hits are taken.
fn fold(mistake: Mistake) {
    let acts: &[Act] = &[
        |model| {
            model.update_late(TAG, 3, 1);
            model.update_late(TAG, 5, 2);
        },
        DRAIN,
    ];
    explore(
        mistake,
        |_| {},
        acts,
        |model| {
            assert_eq!(model.handed() + model.pending(), 3, "hits");
            model.owes(TAG, 8);
        },
    );
}

#[test]
fn the_hits_of_a_folded_slot_are_handed_over_once_or_marked() {
    fold(Mistake::None);
}

#[test]
#[should_panic(expected = "hits")]
fn hits_folded_away_are_noticed() {
    fold(Mistake::NoAdd);
}

#[test]
#[should_panic(expected = "is not marked")]
fn no_mark_is_noticed() {
    hit(Mistake::NoMark, false, &[HIT, DRAIN], 3);
}

#[test]
#[should_panic(expected = "is not marked")]
fn a_mark_before_the_swap_is_noticed() {
    hit(Mistake::MarkFirst, false, &[HIT_ONCE, DRAIN], 1);
}

#[test]
#[should_panic(expected = "is not marked")]
fn a_mark_without_a_fence_is_noticed() {
    hit(Mistake::NoFence, true, &[HIT, DRAIN], 3);
}

#[test]
#[should_panic(expected = "is not marked")]
fn a_visit_before_the_bits_are_cleared_is_noticed() {
    hit(Mistake::VisitFirst, false, &[HIT, DRAIN], 3);
}

#[test]
#[should_panic(expected = "is not marked")]
fn a_line_that_is_not_marked_again_is_noticed() {
    hit(Mistake::NoMarkOfLater, true, &[HIT, DRAIN_LATER], 3);
}

#[test]
#[should_panic(expected = "hits")]
fn a_hit_taken_without_comparing_is_noticed() {
    hit(Mistake::NoCompare, true, &[HIT, DRAIN], 3);
}
