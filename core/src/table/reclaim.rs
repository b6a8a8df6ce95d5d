//! Freeing rules: an index that no bucket names can mean another rule.

use std::sync::atomic::{Ordering, fence};

use super::slot::{RULES, Slot};
use super::{Table, line, rules};

impl Table {
    /// Frees the rules that no bucket names, of those that `exclude` could exclude from being used
    /// by any live process; they must stay excluded until this returns. A bucket that is full, and
    /// of which peers need not hear, is taken out of its slot. Looks at the whole table.
    pub(crate) fn reclaim_rules(&self, now: u64, mut exclude: impl FnMut(u16) -> bool) {
        let mut is_free = vec![false; RULES];
        for (index, place) in rules::used(self.region.rules()) {
            is_free[usize::from(index)] = place.is_ready() && exclude(index);
        }
        // Nobody puts a bucket of an excluded rule into a slot, so none is missed.
        self.each_cell(|_, cell| {
            let rule = usize::from(cell.load().rule());
            if !is_free[rule] {
                return;
            }
            let is_meant = |slot: Slot| usize::from(slot.rule()) == rule;
            let lost = |slot: Slot| self.unreported.add(slot.pending() * self.quantum_of(slot));
            is_free[rule] = line::clear(cell, is_meant, |slot| self.worth(slot, now), lost);
        });
        let used = rules::used(self.region.rules());
        let freed: Vec<_> = used.filter(|(index, _)| is_free[usize::from(*index)]).collect();
        freed.iter().for_each(|(_, place)| place.set_ready(false));
        // Pairs with the fence in `pin_rules`: a process that pins the rules and then looks for its
        // own finds them freed, or we find them pinned.
        fence(Ordering::SeqCst);
        if self.are_rules_pinned() {
            freed.iter().for_each(|(_, place)| place.set_ready(true));
        }
    }

    /// Says that from now on no index is given to another rule, because this process cannot say
    /// which rules it uses.
    pub(crate) fn pin_rules(&self) {
        // Relaxed: the fence orders it.
        self.region.header().rules_pinned.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    pub(crate) fn are_rules_pinned(&self) -> bool {
        self.region.header().rules_pinned.load(Ordering::Relaxed) != 0
    }
}
