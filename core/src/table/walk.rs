//! Looking at many buckets: what has to be reported, what is not full, and moving house.

use std::sync::atomic::Ordering;

use super::cell::Cell;
use super::dirty::{self, Visit};
use super::geometry::PAGE_LINES;
use super::place::Place;
use super::slot::Slot;
use super::{Key, Step, Table, rules};
use crate::bucket::{Scale, Tat};

/// A bucket, as peers and people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) key: Key,
    pub(crate) hits: u64,
    pub(crate) tat: Tat,
}

impl Table {
    /// Takes over rules, buckets and what an exchange needs to know of a table with the same zero
    /// and key.
    pub(crate) fn copy_from(&self, old: &Table, now: u64) {
        rules::copy(old.region.rules(), self.region.rules());
        self.copy_exchange(old);
        self.copy_services_from(old);
        old.each(now, |bucket, scale| {
            let Bucket { key, hits, tat } = bucket;
            let hits = i64::try_from(hits).unwrap_or(i64::MAX);
            self.update(key, scale, now, Some(now), |_| Step { tat, hits, answer: () });
        });
    }

    /// Without the origins a peer's reports would be charged twice; without the time of the last
    /// exchange, hits that wait for an exchanger would not be taken over.
    fn copy_exchange(&self, old: &Table) {
        let (from, to) = (old.region.header(), self.region.header());
        for (from, to) in [(&from.exchanged_ns, &to.exchanged_ns), (&from.slack_ns, &to.slack_ns)] {
            // Relaxed: nobody else sees the new table yet.
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        from.board.copy_node_to(&to.board);
        for (seat, origin) in old.seats() {
            if let Some(place) = self.take_seat(origin) {
                self.set_window(place, &old.window(seat));
                self.set_facts(place, &old.facts(seat));
            }
        }
    }

    /// Takes all hits that are pending and due. Buckets whose line was marked are visited, or all.
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
        let mut later = false;
        for cell in &slots.0 {
            match dirty::visit(cell, |slot| due(&self.bucket(line, slot))) {
                Visit::Nothing => {}
                Visit::Later => later = true,
                Visit::Taken(slot) => out(self.bucket(line, slot)),
            }
        }
        if later {
            self.mark_dirty(line);
        }
    }

    /// Shows every bucket that is not full.
    pub(crate) fn each(&self, now: u64, mut show: impl FnMut(Bucket, &Scale)) {
        for page in (0..self.region.dirty().len()).filter(|page| self.region.is_used(*page)) {
            for (i, line) in self.region.page(page).iter().enumerate() {
                for slot in line.0.iter().map(Cell::load).filter(|slot| !slot.is_empty()) {
                    if let Some(scale) = self.scale_of(slot)
                        && scale.share_used(slot.tat(), now) > 0
                    {
                        show(self.bucket(page * PAGE_LINES + i, slot), &scale);
                    }
                }
            }
        }
    }

    /// How many buckets are not full.
    pub(crate) fn live(&self, now: u64) -> usize {
        let mut live = 0;
        self.each(now, |_, _| live += 1);
        live
    }

    fn bucket(&self, line: usize, slot: Slot) -> Bucket {
        let fingerprint = Place::fingerprint(slot.mark(), line, self.region.lines().len());
        let key = Key { fingerprint, rule: slot.rule() };
        Bucket { key, hits: slot.pending(), tat: slot.tat() }
    }
}
