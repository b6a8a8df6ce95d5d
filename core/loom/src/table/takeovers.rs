//! Slots that one tag takes over while their own tag is charged: every charge must be kept.

use super::model::{Act, Actor, Charge, NOW, PAST, explore};
use super::mutation::Mutation;

const TAG: u64 = 2;
const OTHER: u64 = 4;
/// More tags with the same home line.
const CROWD: [u64; 4] = [10, 12, 14, 16];
/// Tags whose home line is the second line of the others.
const FAR: [u64; 4] = [11, 13, 15, 17];

/// Fills slots of the home line with live buckets, from the first slot on.
fn crowd(actor: &Actor, tags: &[u64]) {
    for (index, tag) in tags.iter().enumerate() {
        actor.put(*tag, index, NOW + 50);
    }
}

/// A slot whose TAT is in the past is charged by its own tag while another tag takes it over.
fn past(mutation: Mutation, room_at_home: bool) {
    let acts: &[Act] = &[|actor| actor.update(TAG, 3, 0), |actor| actor.update(OTHER, 5, 0)];
    let prepare = move |actor: &Actor| {
        crowd(actor, &CROWD[..2]);
        actor.put(TAG, 2, PAST);
        if !room_at_home {
            actor.put(CROWD[3], 3, NOW + 50);
            crowd(actor, &FAR[..3]);
        }
    };
    explore(mutation, prepare, acts, move |model| {
        model.assert_debt(TAG, 3);
        model.assert_debt(OTHER, 5);
        CROWD.into_iter().take(2).for_each(|tag| model.assert_debt(tag, 50));
    });
}

#[test]
fn a_slot_that_is_charged_and_taken_over_keeps_both_charges() {
    past(Mutation::None, true);
    past(Mutation::None, false);
}

#[test]
#[should_panic(expected = "debt of")]
fn a_takeover_without_comparing_is_detected() {
    past(Mutation::NoCompare, false);
}

/// Two tags take over the same slot while its own tag is charged.
#[test]
fn a_slot_that_two_tags_take_over_keeps_every_charge() {
    let acts: &[Act] = &[
        |actor| actor.update(TAG, 3, 0),
        |actor| actor.update(OTHER, 5, 0),
        |actor| actor.update(6, 7, 0),
    ];
    let prepare = |actor: &Actor| {
        crowd(actor, &CROWD[..2]);
        actor.put(TAG, 2, PAST);
        actor.put(CROWD[3], 3, PAST);
    };
    explore(Mutation::None, prepare, acts, |model| {
        model.assert_debt(TAG, 3);
        model.assert_debt(OTHER, 5);
        model.assert_debt(6, 7);
    });
}

/// All slots are live, and the tag's slot has the lowest eviction cost.
fn evicted(mutation: Mutation, acts: &'static [Act]) {
    let prepare = |actor: &Actor| {
        crowd(actor, &CROWD[..3]);
        actor.put(TAG, 3, NOW + 10);
        crowd(actor, &FAR);
    };
    explore(mutation, prepare, acts, |_| {});
}

const HIT: Act = |actor| _ = actor.charge(Charge { evict: true, ..Charge::new(TAG, 3) });
const EVICT: Act = |actor| _ = actor.charge(Charge { evict: true, ..Charge::new(OTHER, 60) });
const EVICT_LESS: Act = |actor| _ = actor.charge(Charge { evict: true, ..Charge::new(6, 20) });

/// The charge is in the slot, was evicted with it, or is in a newly claimed slot.
#[test]
fn a_charge_to_a_slot_that_is_evicted_is_counted_once() {
    evicted(Mutation::None, &[HIT, EVICT]);
    evicted(Mutation::None, &[EVICT_LESS, EVICT]);
    evicted(Mutation::None, &[HIT, HIT, EVICT]);
}

#[test]
#[should_panic(expected = "debt of")]
fn an_eviction_without_comparing_is_detected() {
    evicted(Mutation::NoCompare, &[HIT, EVICT]);
}
