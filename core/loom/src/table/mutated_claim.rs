//! A smaller reimplementation of the claim, for the mutations that cannot be made in `line.rs`.

use std::ptr;

use super::cell::{Cell, full_fence};
use super::line::{Claim, EvictionCost, Line, Pair};
use super::mutation::Mutation;
use super::slot::{Mark, Slot};

const CROWDED: usize = 3;

/// Like `Pair::claim` with `evict`.
pub(super) fn claim(
    pair: &Pair<'_>,
    new: Slot,
    token: u64,
    eviction_cost: impl Fn(Slot) -> EvictionCost,
    on_replace: impl FnOnce(Slot),
) -> Claim {
    let Some((cell, slot, displaced)) = choose(pair, &eviction_cost) else { return Claim::Lost };
    let mark = if displaced { pair.mark.displaced() } else { pair.mark };
    let bucket = Slot::new(mark, new.rule(), new.pending(), new.tat());
    let at_once = Mutation::NoReservation.is_active();
    let reserved = if at_once { bucket } else { Slot::reserved(mark, token) };
    if !cell.replace(slot, reserved) {
        return Claim::Lost;
    }
    on_replace(slot);
    if at_once {
        return Claim::Taken { displaced };
    }
    let alone = Mutation::NoSecondSearch.is_active() || cancel_other_claims(pair, cell);
    let next = if alone { bucket } else { reserved.given_up() };
    match cell.replace(reserved, next) && alone {
        true => Claim::Taken { displaced },
        false => Claim::Lost,
    }
}

fn cancel_other_claims(pair: &Pair<'_>, own: &Cell) -> bool {
    full_fence();
    let lines = if Mutation::HomeOnly.is_active() { 1 } else { 2 };
    let marked = [(pair.home, pair.mark), (pair.second, pair.mark.displaced())];
    for (line, mark) in marked.into_iter().take(lines) {
        for cell in line.0.iter().filter(|cell| !ptr::eq(*cell, own)) {
            loop {
                let slot = cell.load();
                if slot.is_empty() || slot.mark() != mark || slot.is_given_up() {
                    break;
                }
                if !slot.is_reserved() {
                    return false;
                }
                if Mutation::NoCancel.is_active() || cell.replace(slot, slot.given_up()) {
                    break;
                }
            }
        }
    }
    true
}

type Chosen<'a> = (&'a Cell, Slot, bool);

fn choose<'a>(
    pair: &Pair<'a>,
    eviction_cost: &impl Fn(Slot) -> EvictionCost,
) -> Option<Chosen<'a>> {
    let (home, live, cell, slot) = survey(pair.home, pair.mark, eviction_cost)?;
    if home == 0 && live < CROWDED {
        return Some((cell, slot, false));
    }
    let (second, _, other, found) = survey(pair.second, pair.mark.displaced(), eviction_cost)?;
    match second <= home {
        true => Some((other, found, true)),
        false => Some((cell, slot, false)),
    }
}

/// Returns the lowest eviction cost of a line, the number of slots with a cost, and the slot with
/// the lowest cost.
fn survey<'a>(
    line: &'a Line,
    mark: Mark,
    eviction_cost: &impl Fn(Slot) -> EvictionCost,
) -> Option<(EvictionCost, usize, &'a Cell, Slot)> {
    let slots: Vec<(&Cell, Slot)> = line.0.iter().map(|cell| (cell, cell.load())).collect();
    let own = |slot: Slot| slot.mark() == mark && !slot.is_empty();
    if let Some((cell, slot)) = slots.iter().copied().find(|(_, slot)| own(*slot)) {
        return slot.is_reserved().then_some((0, 0, cell, slot));
    }
    let live = slots.iter().filter(|(_, slot)| eviction_cost(*slot) > 0).count();
    let (cell, slot) =
        slots.into_iter().min_by_key(|(_, slot)| (eviction_cost(*slot), !slot.is_empty()))?;
    Some((eviction_cost(slot), live, cell, slot))
}
