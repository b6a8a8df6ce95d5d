//! Freeing rules: an index that no bucket names can mean another rule.

use std::sync::atomic::{Ordering, fence};

use super::slot::{RULES, Slot};
use super::{Table, line, rules};

impl Table {
    /// Frees all rules that no live process uses and no bucket names. `exclude` returns whether a
    /// rule has no user, and then keeps users away until this function has returned. A bucket that
    /// is full and has no hits to report is taken out of its slot. Reads the whole table.
    pub(crate) fn reclaim_rules(&self, now: u64, mut exclude: impl FnMut(u16) -> bool) {
        let mut is_free = vec![false; RULES];
        for (index, entry) in rules::used(self.region.rules()) {
            is_free[usize::from(index)] = entry.is_ready() && exclude(index);
        }
        // Without users no slot can come to name an excluded rule, so one pass finds all.
        self.each_cell(|_, cell| {
            let rule = usize::from(cell.load().rule());
            if is_free[rule] {
                let is_meant = |slot: Slot| usize::from(slot.rule()) == rule;
                let on_replace =
                    |slot: Slot| self.unreported.add(slot.pending() * self.quantum_of(slot));
                let cost = |slot| self.eviction_cost(slot, now);
                is_free[rule] = line::clear(cell, is_meant, cost, on_replace);
            }
            true
        });
        let used = rules::used(self.region.rules());
        let freed: Vec<_> = used.filter(|(index, _)| is_free[usize::from(*index)]).collect();
        freed.iter().for_each(|(_, entry)| entry.set_ready(false));
        // Pairs with the fence in `pin_rules`: a process that pins the rules and then looks for its
        // own finds them freed, or we find them pinned.
        fence(Ordering::SeqCst);
        if self.are_rules_pinned() {
            freed.iter().for_each(|(_, entry)| entry.set_ready(true));
        }
    }

    /// Stops the reuse of indexes in this table, because this process cannot show which rules it
    /// uses.
    pub(crate) fn pin_rules(&self) {
        // Relaxed: the fence orders it.
        self.region.header().rules_pinned.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    pub(crate) fn are_rules_pinned(&self) -> bool {
        self.region.header().rules_pinned.load(Ordering::Relaxed) != 0
    }
}
