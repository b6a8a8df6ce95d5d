//! Threads that claim: for one tag, against each other, and slots that are past.

use super::mistake::Mistake;
use super::model::{Act, Model, NOW, PAST, explore};

const TAG: u64 = 2;
const OTHER: u64 = 4;
/// More tags with the same home.
const CROWD: [u64; 4] = [10, 12, 14, 16];
/// Tags whose home is the second line of the others.
const FAR: [u64; 4] = [11, 13, 15, 17];

/// Live slots in the home line, from the first on.
fn crowd(model: &Model, many: usize) {
    for (place, tag) in CROWD.into_iter().take(many).enumerate() {
        model.put(tag, place, NOW + 50);
    }
}

fn claimed_by_two(mistake: Mistake, crowded: usize) {
    let acts: &[Act] = &[|model| model.update(TAG, 3, 0), |model| model.update(TAG, 5, 0)];
    explore(
        mistake,
        move |model| crowd(model, crowded),
        acts,
        move |model| {
            model.owes(TAG, 8);
            CROWD.into_iter().take(crowded).for_each(|tag| model.owes(tag, 50));
        },
    );
}

#[test]
fn two_claims_of_one_tag_keep_both_debts() {
    claimed_by_two(Mistake::None, 0);
}

/// The first to claim makes the home line crowded, so that the other goes to the second line.
#[test]
fn two_claims_in_two_lines_keep_both_debts() {
    claimed_by_two(Mistake::None, 2);
}

#[test]
fn two_claims_in_a_crowded_line_keep_both_debts() {
    claimed_by_two(Mistake::None, 3);
    claimed_by_two(Mistake::None, 4);
}

#[test]
#[should_panic(expected = "debt of 2")]
fn no_fold_is_noticed() {
    claimed_by_two(Mistake::NoFold, 0);
}

#[test]
#[should_panic(expected = "debt of 2")]
fn no_fold_over_two_lines_is_noticed() {
    claimed_by_two(Mistake::NoFold, 2);
}

#[test]
#[should_panic(expected = "debt of 2")]
fn a_debt_folded_away_is_noticed() {
    claimed_by_two(Mistake::NoAdd, 0);
}

/// Another tag makes the home line crowded between the two, so that the second claim has not seen
/// the first when it goes elsewhere.
fn claimed_unseen(mistake: Mistake) {
    let acts: &[Act] = &[
        |model| model.update(TAG, 3, 0),
        |model| {
            model.update(OTHER, 7, 0);
            model.update(TAG, 5, 0);
        },
    ];
    let prepare = |model: &Model| {
        crowd(model, 2);
        model.put(OTHER, 2, PAST);
    };
    explore(mistake, prepare, acts, |model| {
        model.owes(TAG, 8);
        model.owes(OTHER, 7);
    });
}

#[test]
fn two_claims_that_do_not_see_each_other_keep_both_debts() {
    claimed_unseen(Mistake::None);
}

#[test]
#[should_panic(expected = "debt of 2")]
fn a_fold_without_a_fence_is_noticed() {
    claimed_unseen(Mistake::NoFence);
}

#[test]
#[should_panic(expected = "debt of 2")]
fn a_swap_that_does_not_compare_is_noticed() {
    claimed_by_two(Mistake::NoCompare, 0);
}

/// Two claims, and a third thread that saw the first slot before it was claimed, the second after
/// it was folded.
fn hit_on_the_junior(mistake: Mistake, crowded: usize) {
    let acts: &[Act] = &[
        |model| {
            model.update_late(TAG, 3, 0);
            model.update_late(TAG, 5, 0);
        },
        |model| model.update(TAG, 7, 0),
    ];
    let prepare = move |model: &Model| crowd(model, crowded);
    explore(mistake, prepare, acts, |model| model.owes(TAG, 15));
}

#[test]
fn a_hit_on_a_slot_that_is_folded_is_kept() {
    hit_on_the_junior(Mistake::None, 0);
    hit_on_the_junior(Mistake::None, 2);
}

#[test]
#[should_panic(expected = "debt of 2")]
fn a_spent_slot_that_comes_alive_without_a_fold_is_noticed() {
    hit_on_the_junior(Mistake::NoFoldOfSpent, 0);
}

/// A fold makes a slot worth nothing while another tag is sent away because the line was crowded.
fn sent_away_during_a_fold(mistake: Mistake) {
    let acts: &[Act] = &[|model| model.update_late(TAG, 3, 0), |model| model.update(OTHER, 7, 0)];
    let prepare = |model: &Model| {
        model.put(CROWD[0], 0, NOW + 50);
        model.put(TAG, 1, NOW + 5);
    };
    explore(mistake, prepare, acts, |model| {
        model.owes(TAG, 8);
        model.owes(OTHER, 7);
    });
}

#[test]
fn a_tag_sent_away_during_a_fold_is_found() {
    sent_away_during_a_fold(Mistake::None);
}

#[test]
#[should_panic(expected = "debt of 4")]
fn a_spent_slot_that_is_emptied_is_noticed() {
    sent_away_during_a_fold(Mistake::SpentIsEmptied);
}

/// A slot that is past is hit by its own tag while another tag takes it over.
fn reclaimed(mistake: Mistake, room_at_home: bool) {
    let acts: &[Act] = &[|model| model.update(TAG, 3, 0), |model| model.update(OTHER, 5, 0)];
    let prepare = move |model: &Model| {
        crowd(model, 2);
        model.put(TAG, 2, PAST);
        if !room_at_home {
            model.put(CROWD[3], 3, NOW + 50);
            for (place, tag) in FAR.into_iter().take(3).enumerate() {
                model.put(tag, place, NOW + 50);
            }
        }
    };
    explore(mistake, prepare, acts, move |model| {
        model.owes(TAG, 3);
        model.owes(OTHER, 5);
        CROWD.into_iter().take(2).for_each(|tag| model.owes(tag, 50));
    });
}

#[test]
fn a_slot_hit_and_taken_over_charges_each_its_own() {
    reclaimed(Mistake::None, true);
    reclaimed(Mistake::None, false);
}

#[test]
#[should_panic(expected = "debt of")]
fn a_slot_taken_over_without_comparing_is_noticed() {
    reclaimed(Mistake::NoCompare, false);
}
