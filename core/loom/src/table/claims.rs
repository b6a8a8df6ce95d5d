//! Threads that claim a slot for the same tag: in one slot, in two slots of a line, in two lines,
//! and some that die on the way.

use super::mistake::Mistake;
use super::model::{Act, Actor, Ask, Model, NOW, PAST, explore};
use super::slot::{Mark, Slot};

const TAG: u64 = 2;
const OTHER: u64 = 4;
/// More tags with the same home.
const CROWD: [u64; 4] = [10, 12, 14, 16];

/// A moment at which `SOON` is past.
const LATER: u64 = NOW + 10;
const SOON: u64 = NOW + 5;

const ONE: Ask = Ask { burst: 1, ..Ask::new(TAG, 1) };
const ONE_OF_TWO: Ask = Ask { burst: 2, ..Ask::new(TAG, 1) };

type Prepare = fn(&Actor);

const EMPTY: Prepare = |_| {};

/// Both choose the third slot: there the home line becomes crowded.
const TWO_LIVE: Prepare = |actor| {
    actor.put(CROWD[0], 0, NOW + 50);
    actor.put(CROWD[1], 1, NOW + 50);
};

/// Both choose the second line.
const THREE_LIVE: Prepare = |actor| {
    TWO_LIVE(actor);
    actor.put(CROWD[2], 2, NOW + 50);
};

/// Who asks now chooses the second slot, who asks later the first. Other rules: of those none is
/// better than the first.
const TWO_SLOTS: Prepare = |actor| {
    actor.put(CROWD[0], 0, SOON);
    actor.put_slot(CROWD[1], 1, Slot::new(Mark::new(CROWD[1]), 2, 0, PAST));
    actor.put(CROWD[2], 2, NOW + 50);
    actor.put_slot(CROWD[3], 3, Slot::new(Mark::new(CROWD[3]), 3, 0, PAST));
};

/// Who asks now chooses the second line, who asks later the home line.
const TWO_LINES: Prepare = |actor| {
    actor.put(CROWD[0], 0, SOON);
    actor.put(CROWD[1], 1, NOW + 50);
    actor.put(CROWD[2], 2, NOW + 50);
    actor.put_slot(CROWD[3], 3, Slot::new(Mark::new(CROWD[3]), 2, 0, PAST));
};

const EVERY: [Prepare; 5] = [EMPTY, TWO_LIVE, THREE_LIVE, TWO_SLOTS, TWO_LINES];

fn admits(mistake: Mistake, prepare: Prepare, acts: &'static [Act], burst: u64) {
    explore(mistake, prepare, acts, move |model| {
        assert_eq!(model.charged(TAG), burst, "admitted");
        model.owes(TAG, burst);
    });
}

const ASK_NOW: Act = |actor| _ = actor.ask(ONE);
const ASK_LATER: Act = |actor| _ = actor.ask(Ask { fresh: LATER, ..ONE });
const TWO_ASK: &[Act] = &[ASK_NOW, ASK_LATER];

#[test]
fn two_claims_admit_the_burst_and_no_more() {
    EVERY.into_iter().for_each(|prepare| admits(Mistake::None, prepare, TWO_ASK, 1));
}

/// One of the two asks once more after its claim.
#[test]
fn two_claims_and_a_hit_admit_the_burst_and_no_more() {
    const ASK_TWICE: Act = |actor| {
        actor.ask(ONE_OF_TWO);
        actor.ask(ONE_OF_TWO);
    };
    const ASK: Act = |actor| _ = actor.ask(Ask { fresh: LATER, ..ONE_OF_TWO });
    EVERY.into_iter().for_each(|prepare| admits(Mistake::None, prepare, &[ASK_TWICE, ASK], 2));
}

#[test]
fn three_claims_admit_the_burst_and_no_more() {
    const NOW_OF_TWO: Act = |actor| _ = actor.ask(ONE_OF_TWO);
    const LATER_OF_TWO: Act = |actor| _ = actor.ask(Ask { fresh: LATER, ..ONE_OF_TWO });
    let acts = &[NOW_OF_TWO, LATER_OF_TWO, NOW_OF_TWO];
    for prepare in [EMPTY, TWO_SLOTS, TWO_LINES] {
        admits(Mistake::None, prepare, acts, 2);
    }
}

/// So that the mistakes below are the only ones made there.
#[test]
fn the_claim_written_again_is_no_mistake() {
    EVERY.into_iter().for_each(|prepare| admits(Mistake::Rewritten, prepare, TWO_ASK, 1));
    home_crowded_meanwhile(Mistake::Rewritten);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn a_bucket_put_there_at_once_is_noticed() {
    admits(Mistake::NoReservation, TWO_SLOTS, TWO_ASK, 1);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn no_second_look_is_noticed() {
    admits(Mistake::NoSecondLook, TWO_SLOTS, TWO_ASK, 1);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn another_claim_that_may_go_on_is_noticed() {
    admits(Mistake::NoSilence, TWO_SLOTS, TWO_ASK, 1);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn a_second_look_at_home_only_is_noticed() {
    admits(Mistake::HomeOnly, TWO_LINES, TWO_ASK, 1);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn a_second_look_without_a_fence_is_noticed() {
    admits(Mistake::NoFence, TWO_SLOTS, TWO_ASK, 1);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn a_second_look_at_two_lines_without_a_fence_is_noticed() {
    admits(Mistake::NoFence, TWO_LINES, TWO_ASK, 1);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn a_reservation_that_counts_as_a_bucket_is_noticed() {
    admits(Mistake::ReservedIsFound, TWO_SLOTS, TWO_ASK, 1);
}

#[test]
#[should_panic(expected = "debt of 2")]
fn a_swap_that_does_not_compare_is_noticed() {
    let acts: &[Act] = &[|actor| actor.update(TAG, 3, 0), |actor| actor.update(TAG, 5, 0)];
    explore(Mistake::NoCompare, EMPTY, acts, |_| {});
}

/// Another tag makes the home line crowded while a claim is under way there, so that the next
/// claim goes elsewhere.
fn home_crowded_meanwhile(mistake: Mistake) {
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
    explore(mistake, prepare, acts, |model| {
        model.owes(TAG, 8);
        model.owes(OTHER, 7);
    });
}

#[test]
fn a_claim_sent_away_meets_the_one_at_home() {
    home_crowded_meanwhile(Mistake::None);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn a_claim_sent_away_unseen_is_noticed() {
    home_crowded_meanwhile(Mistake::HomeOnly);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn a_claim_sent_away_without_a_fence_is_noticed() {
    home_crowded_meanwhile(Mistake::NoFence);
}

/// A claim is told to give up, and before it hears of that, a third one reserves its slot.
fn reserved_again(mistake: Mistake) {
    let acts: &[Act] = &[ASK_LATER, |actor| {
        actor.ask(ONE);
        actor.claim_late(ONE);
    }];
    admits(mistake, TWO_SLOTS, acts, 1);
}

#[test]
fn a_claim_told_to_give_up_does_so_although_its_slot_is_reserved_again() {
    reserved_again(Mistake::None);
}

#[test]
#[should_panic(expected = "two buckets of 2")]
fn claims_that_cannot_be_told_apart_are_noticed() {
    reserved_again(Mistake::OneToken);
}

/// A reservation that was left, in the first slot.
const LEFT: Prepare = |actor| actor.put_slot(TAG, 0, Slot::reserved(Mark::new(TAG), 9));
const GIVEN_UP: Prepare =
    |actor| actor.put_slot(TAG, 0, Slot::reserved(Mark::new(TAG), 9).given_up());

#[test]
fn what_a_dead_claim_left_is_taken_over() {
    for prepare in [LEFT, GIVEN_UP] {
        admits(Mistake::None, prepare, TWO_ASK, 1);
    }
}

/// A claim is given up in a line that has sent another tag away.
fn given_up(mistake: Mistake) {
    let acts: &[Act] = &[|actor| actor.claim_late(ONE), |actor| actor.update(OTHER, 7, 0)];
    let prepare = |actor: &Actor| {
        LEFT(actor);
        actor.put(TAG, 1, NOW + 50);
        actor.put(CROWD[0], 2, NOW + 50);
        actor.update(OTHER, 5, 0);
    };
    explore(mistake, prepare, acts, |model| model.owes(OTHER, 12));
}

#[test]
fn a_tag_sent_away_is_found_although_a_claim_is_given_up() {
    given_up(Mistake::None);
}

#[test]
#[should_panic(expected = "of 4 in")]
fn a_claim_given_up_that_empties_its_slot_is_noticed() {
    given_up(Mistake::GivenUpIsEmptied);
}

fn dies_after<const SWAPS: usize>(prepare: Prepare) {
    let acts: &[Act] = &[
        |actor| actor.ask_and_die(SWAPS, Ask::new(TAG, 3)),
        |actor| assert!(actor.ask(Ask { fresh: LATER, ..Ask::new(TAG, 5) })),
    ];
    let check = |model: &Model| assert!([5, 8].contains(&model.charged(TAG)));
    explore(Mistake::None, prepare, acts, check);
}

#[test]
fn a_thread_that_dies_leaves_a_tag_that_others_can_claim() {
    for prepare in EVERY {
        dies_after::<0>(prepare);
        dies_after::<1>(prepare);
        dies_after::<2>(prepare);
        dies_after::<3>(prepare);
    }
}

/// All that is worth nothing is cleared while a tag comes back that had such a bucket, at home or
/// sent away.
fn cleared(mistake: Mistake) {
    let acts: &[Act] = &[|actor| actor.clear(NOW), ASK_NOW, ASK_LATER];
    let at_home: Prepare = |actor| actor.put(TAG, 0, PAST);
    let sent_away: Prepare = |actor| {
        THREE_LIVE(actor);
        actor.put_slot(TAG + 1, 0, Slot::new(Mark::new(TAG).displaced(), 1, 0, PAST));
    };
    for prepare in [at_home, sent_away, TWO_SLOTS] {
        admits(mistake, prepare, &acts[..2], 1);
    }
    admits(mistake, at_home, acts, 1);
}

#[test]
fn a_tag_whose_full_bucket_is_cleared_gets_its_burst_and_no_more() {
    cleared(Mistake::None);
}

/// Buckets of the home line are cleared that had sent the tag away.
fn cleared_at_home(mistake: Mistake) {
    let acts: &[Act] = &[|actor| actor.clear(LATER), |actor| actor.update(TAG, 7, 0)];
    let prepare = |actor: &Actor| {
        (0..3).for_each(|place| actor.put(CROWD[place], place, SOON));
        actor.update(TAG, 20, 0);
    };
    explore(mistake, prepare, acts, |model| model.owes(TAG, 27));
}

#[test]
fn a_tag_sent_away_is_found_although_its_home_is_cleared() {
    cleared_at_home(Mistake::None);
}

#[test]
#[should_panic(expected = "of 2 in")]
fn a_bucket_cleared_that_empties_its_slot_is_noticed() {
    cleared_at_home(Mistake::GivenUpIsEmptied);
}
