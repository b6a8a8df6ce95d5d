//! Walks over all buckets: draining pending hits, listing, and copying to another table.

use std::sync::atomic::Ordering;

use super::cell::Cell;
use super::dirty::{self, SlotDrain};
use super::geometry::PAGE_LINES;
use super::location::Location;
use super::rules::SharedRule;
use super::slot::{RULES, Slot};
use super::{BucketUpdate, Key, Table};
use crate::limit::bucket::{Scale, Tat};

/// A bucket, as the exchange and listings see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) key: Key,
    pub(crate) hits: u64,
    pub(crate) tat: Tat,
}

impl Table {
    /// Copies all buckets, their rules and the state of the exchange from a table with the same
    /// zero and key. No other process may use this table yet. The old table may be in use
    /// meanwhile, so one of its rule indexes may change its meaning during the copy.
    pub(crate) fn copy_from(&self, old: &Table, now: u64) {
        self.copy_exchange(old);
        // For each index of the old table, the last rule that it named and that rule's index here.
        let mut indexes = vec![None; RULES];
        old.each(now, |bucket, id, scale| {
            let Bucket { key, hits, tat } = bucket;
            let last = &mut indexes[usize::from(key.rule)];
            let known = last.filter(|(rule, _)| *rule == (id, *scale)).map(|(_, index)| index);
            let add = || self.add_rule(id, scale, true, |_| true);
            let Some(rule) = known.or_else(|| self.find_rule(id, scale)).or_else(add) else {
                return self.evicted.add(1);
            };
            *last = Some(((id, *scale), rule));
            let (key, hits) = (Key { rule, ..key }, i64::try_from(hits).unwrap_or(i64::MAX));
            self.update(key, scale, now, Some(now), |_| BucketUpdate { tat, hits, answer: () });
        });
    }

    /// Copies the state of the exchange. Without the windows of the peers, their reports would be
    /// charged twice. Without the time of the last exchange, pending hits would not be copied.
    fn copy_exchange(&self, old: &Table) {
        let (from, to) = (old.region.header(), self.region.header());
        for (from, to) in [(&from.exchanged_ns, &to.exchanged_ns), (&from.slack_ns, &to.slack_ns)] {
            // Relaxed: no other process sees the new table yet.
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        from.exchange.copy_node_to(&to.exchange);
        for (peer_slot, origin) in old.peer_slots() {
            if let Some(own_slot) = self.claim_peer_slot(origin) {
                self.set_window(own_slot, &old.window(peer_slot));
                self.set_peer_status(own_slot, &old.peer_status(peer_slot));
            }
        }
    }

    /// Takes all pending hits that are due, from the dirty lines, or from every line if `all`.
    pub(crate) fn drain(
        &self,
        all: bool,
        mut due: impl FnMut(&Bucket) -> bool,
        mut out: impl FnMut(Bucket),
    ) {
        for (page, word) in self.region.dirty().iter().enumerate() {
            let mut bits = dirty::take_bits(word);
            if all && self.region.is_used(page) {
                bits = u64::MAX;
            }
            while bits != 0 {
                let line = page * PAGE_LINES + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                self.drain_line(line, &mut due, &mut out);
            }
        }
    }

    fn drain_line(
        &self,
        line: usize,
        due: &mut impl FnMut(&Bucket) -> bool,
        out: &mut impl FnMut(Bucket),
    ) {
        let Some(slots) = self.region.lines().get(line) else { return };
        let mut not_due = false;
        for cell in &slots.0 {
            match dirty::drain_slot(cell, |slot| due(&self.bucket(line, slot))) {
                SlotDrain::Nothing => {}
                SlotDrain::NotDue => not_due = true,
                SlotDrain::Taken(slot) => out(self.bucket(line, slot)),
            }
        }
        if not_due {
            self.mark_dirty(line);
        }
    }

    /// Calls `show` for every bucket that is not full, with the identity and the scale of its rule.
    pub(crate) fn each(&self, now: u64, mut show: impl FnMut(Bucket, u64, &Scale)) {
        self.each_while(now, |bucket, id, scale| {
            show(bucket, id, scale);
            true
        });
    }

    /// Like [`Table::each`], but stops when `show` returns false.
    pub(crate) fn each_while(&self, now: u64, mut show: impl FnMut(Bucket, u64, &Scale) -> bool) {
        self.each_cell(|line, cell| {
            let Some((slot, id, scale)) = self.with_rule(cell) else { return true };
            scale.share_used(slot.tat(), now) == 0 || show(self.bucket(line, slot), id, &scale)
        });
    }

    /// Calls `show` for every slot of the pages in use, with its line number, until `show` returns
    /// false.
    pub(super) fn each_cell(&self, mut show: impl FnMut(usize, &Cell) -> bool) {
        for page in (0..self.region.dirty().len()).filter(|page| self.region.is_used(*page)) {
            for (i, line) in self.region.page(page).iter().enumerate() {
                if !line.0.iter().all(|cell| show(page * PAGE_LINES + i, cell)) {
                    return;
                }
            }
        }
    }

    /// Returns the bucket in a slot and its rule, or `None` if the slot is empty or its rule is
    /// invalid.
    fn with_rule(&self, cell: &Cell) -> Option<(Slot, u64, Scale)> {
        let mut slot = cell.load();
        loop {
            if slot.is_empty() {
                return None;
            }
            let rule = self.region.rule(slot.rule()).and_then(SharedRule::read);
            // As long as a slot names a rule, the index of that rule is not reused.
            let again = cell.load();
            if again == slot {
                return rule.map(|(id, scale)| (slot, id, scale));
            }
            slot = again;
        }
    }

    /// Number of buckets that are not full.
    pub(crate) fn live(&self, now: u64) -> usize {
        let mut live = 0;
        self.each(now, |_, _, _| live += 1);
        live
    }

    fn bucket(&self, line: usize, slot: Slot) -> Bucket {
        let fingerprint = Location::fingerprint(slot.mark(), line, self.region.lines().len());
        let key = Key { fingerprint, rule: slot.rule() };
        Bucket { key, hits: slot.pending(), tat: slot.tat() }
    }
}
