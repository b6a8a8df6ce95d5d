//! Frees the indexes of rules that no bucket names and no process uses.

use std::sync::atomic::{Ordering, fence};

use super::slot::{RULES, Slot};
use super::{Table, line, rules};

impl Table {
    /// Frees all rules that no live process uses and no bucket names. `exclude` returns true if a
    /// rule has no user. No process can then start to use that rule until this function has
    /// returned. Full buckets without pending hits are removed. Reads the whole table.
    pub(crate) fn reclaim_rules(&self, now: u64, mut exclude: impl FnMut(u16) -> bool) {
        let mut is_free = vec![false; RULES];
        for (index, entry) in rules::used(self.region.rules()) {
            is_free[usize::from(index)] = entry.is_ready() && exclude(index);
        }
        // An excluded rule has no users, so no slot can start to name it, and one pass is enough.
        self.each_cell(|_, cell| {
            let rule = usize::from(cell.load().rule());
            if is_free[rule] {
                let names_rule = |slot: Slot| usize::from(slot.rule()) == rule;
                let on_replace =
                    |slot: Slot| self.unreported.add(slot.pending() * self.quantum_of(slot));
                let cost = |slot| self.eviction_cost(slot, now);
                is_free[rule] = line::clear(cell, names_rule, cost, on_replace);
            }
            true
        });
        let used = rules::used(self.region.rules());
        let freed: Vec<_> = used.filter(|(index, _)| is_free[usize::from(*index)]).collect();
        freed.iter().for_each(|(_, entry)| entry.set_ready(false));
        // Pairs with the fence in `pin_rules`. A process pins the rules and then searches for its
        // rule. Either it sees that its rule is freed, or we see the pin.
        fence(Ordering::SeqCst);
        if self.are_rules_pinned() {
            freed.iter().for_each(|(_, entry)| entry.set_ready(true));
        }
    }

    /// Stops the reuse of indexes in this table, because this process cannot lock the rules that it
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
