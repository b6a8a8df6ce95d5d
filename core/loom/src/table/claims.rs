//! Threads that claim a slot for the same tag: in one slot, in two slots of a line, in two lines,
//! and some that are killed during the claim.

use super::model::{Act, Actor, Charge, Model, NOW, PAST, explore};
use super::mutation::Mutation;
use super::slot::{Mark, Slot};

const TAG: u64 = 2;
const OTHER: u64 = 4;
/// More tags with the same home line.
const CROWD: [u64; 4] = [10, 12, 14, 16];

/// A time at which a TAT of `SOON` is in the past.
const LATER: u64 = NOW + 10;
const SOON: u64 = NOW + 5;

const ONE: Charge = Charge { burst: 1, ..Charge::new(TAG, 1) };
const ONE_OF_TWO: Charge = Charge { burst: 2, ..Charge::new(TAG, 1) };

type Prepare = fn(&Actor);

const EMPTY: Prepare = |_| {};

/// Both claims choose the third slot of the home line.
const TWO_LIVE: Prepare = |actor| {
    actor.put(CROWD[0], 0, NOW + 50);
    actor.put(CROWD[1], 1, NOW + 50);
};

/// Both claims choose the second line.
const THREE_LIVE: Prepare = |actor| {
    TWO_LIVE(actor);
    actor.put(CROWD[2], 2, NOW + 50);
};

/// An actor at `NOW` chooses slot 1, an actor at `LATER` slot 0. The rules of the slots differ, so
/// their TATs are not compared.
const TWO_SLOTS: Prepare = |actor| {
    actor.put(CROWD[0], 0, SOON);
    actor.put_slot(CROWD[1], 1, Slot::new(Mark::new(CROWD[1]), 2, 0, PAST));
    actor.put(CROWD[2], 2, NOW + 50);
    actor.put_slot(CROWD[3], 3, Slot::new(Mark::new(CROWD[3]), 3, 0, PAST));
};

/// An actor at `NOW` chooses the second line, an actor at `LATER` the home line.
const TWO_LINES: Prepare = |actor| {
    actor.put(CROWD[0], 0, SOON);
    actor.put(CROWD[1], 1, NOW + 50);
    actor.put(CROWD[2], 2, NOW + 50);
    actor.put_slot(CROWD[3], 3, Slot::new(Mark::new(CROWD[3]), 2, 0, PAST));
};

const EVERY: [Prepare; 5] = [EMPTY, TWO_LIVE, THREE_LIVE, TWO_SLOTS, TWO_LINES];

fn admits(mutation: Mutation, prepare: Prepare, acts: &'static [Act], burst: u64) {
    explore(mutation, prepare, acts, move |model| {
        assert_eq!(model.charged(TAG), burst, "admitted");
        model.assert_debt(TAG, burst);
    });
}

const CHARGE_NOW: Act = |actor| _ = actor.charge(ONE);
const CHARGE_LATER: Act = |actor| _ = actor.charge(Charge { fresh: LATER, ..ONE });
const TWO_CHARGES: &[Act] = &[CHARGE_NOW, CHARGE_LATER];

#[test]
fn two_claims_admit_exactly_the_burst() {
    EVERY.into_iter().for_each(|prepare| admits(Mutation::None, prepare, TWO_CHARGES, 1));
}

/// One of the two threads charges a second time after its claim.
#[test]
fn two_claims_and_a_check_admit_exactly_the_burst() {
    const CHARGE_TWICE: Act = |actor| {
        actor.charge(ONE_OF_TWO);
        actor.charge(ONE_OF_TWO);
    };
    const CHARGE_ONCE: Act = |actor| _ = actor.charge(Charge { fresh: LATER, ..ONE_OF_TWO });
    EVERY
        .into_iter()
        .for_each(|prepare| admits(Mutation::None, prepare, &[CHARGE_TWICE, CHARGE_ONCE], 2));
}

#[test]
fn three_claims_admit_exactly_the_burst() {
    const CHARGE_NOW: Act = |actor| _ = actor.charge(ONE_OF_TWO);
    const CHARGE_LATER: Act = |actor| _ = actor.charge(Charge { fresh: LATER, ..ONE_OF_TWO });
    let acts = &[CHARGE_NOW, CHARGE_LATER, CHARGE_NOW];
    for prepare in [EMPTY, TWO_SLOTS, TWO_LINES] {
        admits(Mutation::None, prepare, acts, 2);
    }
}

/// Control for the mutations below, which use the reimplemented claim.
#[test]
fn the_reimplemented_claim_is_correct() {
    EVERY.into_iter().for_each(|prepare| admits(Mutation::Rewritten, prepare, TWO_CHARGES, 1));
    home_crowded_meanwhile(Mutation::Rewritten);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn a_claim_without_a_reservation_is_detected() {
    admits(Mutation::NoReservation, TWO_SLOTS, TWO_CHARGES, 1);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn a_claim_without_a_second_search_is_detected() {
    admits(Mutation::NoSecondSearch, TWO_SLOTS, TWO_CHARGES, 1);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn a_claim_that_cancels_no_others_is_detected() {
    admits(Mutation::NoCancel, TWO_SLOTS, TWO_CHARGES, 1);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn a_second_search_of_the_home_line_only_is_detected() {
    admits(Mutation::HomeOnly, TWO_LINES, TWO_CHARGES, 1);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn a_second_search_of_one_line_without_a_fence_is_detected() {
    admits(Mutation::NoFence, TWO_SLOTS, TWO_CHARGES, 1);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn a_second_search_of_two_lines_without_a_fence_is_detected() {
    admits(Mutation::NoFence, TWO_LINES, TWO_CHARGES, 1);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn a_reservation_that_counts_as_a_bucket_is_detected() {
    admits(Mutation::ReservedIsFound, TWO_SLOTS, TWO_CHARGES, 1);
}

#[test]
#[should_panic(expected = "debt of 2")]
fn a_swap_that_does_not_compare_is_detected() {
    let acts: &[Act] = &[|actor| actor.update(TAG, 3, 0), |actor| actor.update(TAG, 5, 0)];
    explore(Mutation::NoCompare, EMPTY, acts, |_| {});
}

/// Another tag fills the home line while a claim is in progress there, so the next claim is
/// displaced.
fn home_crowded_meanwhile(mutation: Mutation) {
    let acts: &[Act] = &[
        |actor| actor.update(TAG, 3, 0),
        |actor| {
            actor.update(OTHER, 7, 0);
            actor.update(TAG, 5, 0);
        },
    ];
    let prepare = |actor: &Actor| {
        TWO_LIVE(actor);
        actor.put(OTHER, 2, PAST);
    };
    explore(mutation, prepare, acts, |model| {
        model.assert_debt(TAG, 8);
        model.assert_debt(OTHER, 7);
    });
}

#[test]
fn a_displaced_claim_sees_the_claim_in_the_home_line() {
    home_crowded_meanwhile(Mutation::None);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn a_displaced_claim_that_is_not_seen_is_detected() {
    home_crowded_meanwhile(Mutation::HomeOnly);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn a_displaced_claim_without_a_fence_is_detected() {
    home_crowded_meanwhile(Mutation::NoFence);
}

/// A claim is cancelled. Before it notices, a third claim reserves the same slot.
fn reserved_again(mutation: Mutation) {
    let acts: &[Act] = &[CHARGE_LATER, |actor| {
        actor.charge(ONE);
        actor.claim_late(ONE);
    }];
    admits(mutation, TWO_SLOTS, acts, 1);
}

#[test]
fn a_cancelled_claim_gives_up_although_its_slot_is_reserved_again() {
    reserved_again(Mutation::None);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn claims_with_equal_tokens_are_detected() {
    reserved_again(Mutation::OneToken);
}

/// The first slot has a reservation that a killed thread left.
const ABANDONED: Prepare = |actor| actor.put_slot(TAG, 0, Slot::reserved(Mark::new(TAG), 9));
const GIVEN_UP: Prepare =
    |actor| actor.put_slot(TAG, 0, Slot::reserved(Mark::new(TAG), 9).given_up());

#[test]
fn the_reservation_of_a_killed_claim_is_taken_over() {
    for prepare in [ABANDONED, GIVEN_UP] {
        admits(Mutation::None, prepare, TWO_CHARGES, 1);
    }
}

/// A claim gives up in a line that has displaced another tag.
fn given_up(mutation: Mutation) {
    let acts: &[Act] = &[|actor| actor.claim_late(ONE), |actor| actor.update(OTHER, 7, 0)];
    let prepare = |actor: &Actor| {
        ABANDONED(actor);
        actor.put(TAG, 1, NOW + 50);
        actor.put(CROWD[0], 2, NOW + 50);
        actor.update(OTHER, 5, 0);
    };
    explore(mutation, prepare, acts, |model| model.assert_debt(OTHER, 12));
}

#[test]
fn a_displaced_tag_is_found_after_a_claim_gave_up() {
    given_up(Mutation::None);
}

#[test]
#[should_panic(expected = "of 4 in")]
fn a_claim_that_gives_up_and_empties_its_slot_is_detected() {
    given_up(Mutation::GivenUpIsEmptied);
}

fn killed_after<const SWAPS: usize>(prepare: Prepare) {
    let acts: &[Act] = &[
        |actor| actor.charge_and_die(SWAPS, Charge::new(TAG, 3)),
        |actor| assert!(actor.charge(Charge { fresh: LATER, ..Charge::new(TAG, 5) })),
    ];
    let check = |model: &Model| assert!([5, 8].contains(&model.charged(TAG)));
    explore(Mutation::None, prepare, acts, check);
}

#[test]
fn a_tag_can_be_claimed_after_a_thread_was_killed_in_its_claim() {
    for prepare in EVERY {
        killed_after::<0>(prepare);
        killed_after::<1>(prepare);
        killed_after::<2>(prepare);
        killed_after::<3>(prepare);
    }
}

/// Full buckets are cleared while a tag with a full bucket is charged again. The bucket is in the
/// tag's home line or displaced.
fn cleared(mutation: Mutation) {
    let acts: &[Act] = &[|actor| actor.clear(NOW), CHARGE_NOW, CHARGE_LATER];
    let at_home: Prepare = |actor| actor.put(TAG, 0, PAST);
    let displaced: Prepare = |actor| {
        THREE_LIVE(actor);
        actor.put_slot(TAG + 1, 0, Slot::new(Mark::new(TAG).displaced(), 1, 0, PAST));
    };
    for prepare in [at_home, displaced, TWO_SLOTS] {
        admits(mutation, prepare, &acts[..2], 1);
    }
    admits(mutation, at_home, acts, 1);
}

#[test]
fn a_tag_whose_full_bucket_is_cleared_is_admitted_exactly_its_burst() {
    cleared(Mutation::None);
}

/// Buckets of the home line that displaced the tag are cleared.
fn cleared_at_home(mutation: Mutation) {
    let acts: &[Act] = &[|actor| actor.clear(LATER), |actor| actor.update(TAG, 7, 0)];
    let prepare = |actor: &Actor| {
        (0..3).for_each(|index| actor.put(CROWD[index], index, SOON));
        actor.update(TAG, 20, 0);
    };
    explore(mutation, prepare, acts, |model| model.assert_debt(TAG, 27));
}

#[test]
fn a_displaced_tag_is_found_after_its_home_line_was_cleared() {
    cleared_at_home(Mutation::None);
}

#[test]
#[should_panic(expected = "of 2 in")]
fn clearing_that_empties_the_slot_is_detected() {
    cleared_at_home(Mutation::GivenUpIsEmptied);
}
