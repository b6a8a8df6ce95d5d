//! Where the buckets live: a fixed number of slots in memory that many processes may share.
//!
//! One atomic step on one bucket at a time, without locks: a process killed at any instruction
//! leaves a table that works. Buckets are known only by fingerprint and rule. A bucket that is
//! full equals an absent one, so nothing is ever deleted: a claim takes over its slot.
//!
//! It uses the arithmetic of `limit/bucket.rs`, and of `os/` the memory. It knows nothing of domains,
//! configuration (but for `open`), or the engine.

pub(crate) mod cell;
mod dirty;
pub(crate) mod earlier;
mod exchange_state;
pub(crate) mod fingerprint;
mod geometry;
#[cfg(any(test, not(all(feature = "shared", unix))))]
mod heap;
mod line;
mod location;
pub(crate) mod open;
mod origins;
mod peer_status;
mod pending;
mod reclaim;
mod region;
pub(crate) mod rule_users;
mod rules;
mod slot;
mod walk;
pub(crate) mod window;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86;

use std::sync::atomic::Ordering;

use self::cell::Cell;
use self::line::{Claim, EvictionCost, Pair, SLOTS};
use self::location::Location;
#[cfg(test)]
use self::slot::MAX_PENDING;
use self::slot::Slot;
pub(crate) use self::slot::{MAX_TABLE_RULES, RULES};
use crate::limit::bucket::{MAX_TAT, Scale, Tat, carry_over};
use crate::stats::Counter;

pub(crate) use self::exchange_state::COUNTERS;
pub use self::exchange_state::RawEvent;
use self::geometry::PAGE_LINES;
pub(crate) use self::geometry::{Geometry, PAGE};
pub(crate) use self::location::MIN_SHARED_LINES;
pub use self::peer_status::PeerStatus;
pub(crate) use self::region::{Memory, Region, RegionError, TableParams};
pub(crate) use self::walk::Bucket;

/// The name of a bucket in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) fingerprint: u64,
    /// Index into the table's rules.
    pub(crate) rule: u16,
}

/// What one step does to a bucket.
pub(crate) struct BucketUpdate<R> {
    pub(crate) tat: Tat,
    /// Hits that peers must hear about; negative: that they need not hear about after all.
    pub(crate) hits: i64,
    pub(crate) answer: R,
}

/// A bounded set of buckets. Times are nanoseconds since the table's zero.
pub(crate) struct Table {
    region: Region,
    /// Buckets that were forgotten for the sake of others.
    pub(crate) evicted: Counter,
    /// Hits that no peer will hear about.
    pub(crate) unreported: Counter,
}

impl Table {
    pub(crate) fn new(region: Region) -> Table {
        Table { region, evicted: Counter::default(), unreported: Counter::default() }
    }

    /// A table in memory that was just got.
    pub(crate) fn in_memory(memory: impl Memory + 'static, geometry: Geometry) -> Option<Table> {
        Region::new(Box::new(memory), geometry).map(Table::new)
    }

    /// Lines for so many tags, six tenths full.
    pub(crate) fn lines_for(tags: u64) -> usize {
        let lines = (u128::from(tags) * 10).div_ceil(6 * SLOTS as u128);
        usize::try_from(lines).unwrap_or(usize::MAX)
    }

    /// Whether memory may be shared with other processes on this machine at all.
    pub(crate) fn can_be_shared() -> bool {
        Cell::is_lock_free()
    }

    /// The index of a rule that is in the list.
    pub(crate) fn find_rule(&self, id: u64, scale: &Scale) -> Option<u16> {
        rules::find(self.region.rules(), id, scale)
    }

    /// Adds a rule to the list; see `rules::add`.
    pub(crate) fn add_rule(
        &self,
        id: u64,
        scale: &Scale,
        may_reuse: bool,
        hold: impl FnMut(u16) -> bool,
    ) -> Option<u16> {
        let may_reuse = || may_reuse && !self.are_rules_pinned();
        rules::add(self.region.rules(), id, scale, may_reuse, hold)
    }

    /// The index of a rule, which is added if it is not there.
    #[cfg(test)]
    pub(crate) fn rule_index(&self, id: u64, scale: &Scale) -> Option<u16> {
        self.find_rule(id, scale).or_else(|| self.add_rule(id, scale, true, |_| true))
    }

    /// The identity of a rule, and how it counts.
    pub(crate) fn rule(&self, index: u16) -> Option<(u64, Scale)> {
        self.region.rule(index)?.read()
    }

    /// All rules in the list, with their indexes.
    pub(crate) fn rules(&self) -> impl Iterator<Item = (u16, u64, Scale)> {
        let used = rules::used(self.region.rules());
        used.filter_map(|(index, entry)| entry.read().map(|(id, scale)| (index, id, scale)))
    }

    /// The TAT of a bucket.
    pub(crate) fn read(&self, key: Key, scale: &Scale, now: u64) -> Tat {
        let pair = self.pair(self.location(key));
        loop {
            let Some((cell, seen, _)) = pair.find() else { return 0 };
            let slot = cell.load();
            if slot.mark() != seen.mark() {
                continue;
            }
            let tat = self.tat_of(slot, key, scale, now);
            // As long as a slot names a rule, its index means that rule.
            if slot.rule() == key.rule || cell.load() == slot {
                return tat;
            }
        }
    }

    /// `update` in the simplest case, which is nearly every case: the bucket is in its home line, is
    /// counted by the rule that it is asked about, and changes, but not to the last TAT there is.
    /// `None`: it is another case, and
    /// nothing was done.
    ///
    /// With it a check of a hot tag takes 464 instructions in a cluster and 1464 under two rules,
    /// without it 646 and 1820.
    #[inline(always)]
    pub(crate) fn update_at_home<R>(
        &self,
        key: Key,
        scale: &Scale,
        now: u64,
        step: impl FnOnce(Tat) -> BucketUpdate<R>,
    ) -> Option<R> {
        let Location { home, mark, .. } = self.location(key);
        let (cell, old) = self.region.lines()[home].find_under(key.rule, mark)?;
        let BucketUpdate { tat, hits, answer } = step(old.tat());
        let pending = self.pending_after(old.pending(), hits, now);
        let new = old.with(key.rule, pending.stored, tat);
        // Only a change shows that the slot was read as a whole.
        if tat == MAX_TAT || new == old || !cell.replace(old, new) {
            return None;
        }
        self.record_pending(pending, scale, home);
        Some(answer)
    }

    /// One atomic step: `step` sees the TAT and says what becomes of it. It may be asked more than
    /// once; its last answer counts. `None`: all slots for the bucket are worth something, and
    /// nothing was done. With `evict_at`, which must be the time right now, the one worth least is
    /// forgotten: `now` may be long past if the process was held up, and then buckets that others
    /// used meanwhile seem deep in debt.
    pub(crate) fn update<R>(
        &self,
        key: Key,
        scale: &Scale,
        now: u64,
        evict_at: Option<u64>,
        mut step: impl FnMut(Tat) -> BucketUpdate<R>,
    ) -> Option<R> {
        let location = self.location(key);
        let pair = self.pair(location);
        loop {
            let Some((cell, old, displaced)) = pair.find() else {
                let BucketUpdate { tat, hits, answer } = step(0);
                let pending = self.pending_after(0, hits, now);
                match self.claim_slot(key, now, evict_at, location, tat, pending.stored) {
                    Claim::Taken { displaced } => {
                        self.record_pending(pending, scale, self.line_of(location, displaced));
                        return Some(answer);
                    }
                    Claim::Lost => continue,
                    Claim::Full => return None,
                }
            };
            let BucketUpdate { tat, hits, answer } = step(self.tat_of(old, key, scale, now));
            let pending = self.pending_after(self.pending_of(old, key, scale), hits, now);
            let new = old.with(key.rule, pending.stored, tat);
            if new == old {
                // An answer is given about a value that was there, as a whole.
                if cell.load() == old {
                    return Some(answer);
                }
                continue;
            }
            if cell.replace(old, new) {
                self.record_pending(pending, scale, self.line_of(location, displaced));
                return Some(answer);
            }
        }
    }

    /// Finds a slot for a bucket that has none.
    #[cold]
    fn claim_slot(
        &self,
        key: Key,
        now: u64,
        evict_at: Option<u64>,
        location: Location,
        tat: Tat,
        pending: u64,
    ) -> Claim {
        if tat == 0 && pending == 0 {
            // Nothing to remember.
            return Claim::Taken { displaced: false };
        }
        // Before the claim: a page that holds something must be known, also after a kill.
        for displaced in [false, true] {
            self.region.mark_used(self.line_of(location, displaced) / PAGE_LINES);
        }
        let new = Slot::new(location.mark, key.rule, pending, tat);
        // Unlike that of any other claim. Relaxed: only the number matters.
        let token = self.region.header().claims.fetch_add(1, Ordering::Relaxed);
        let fresh = evict_at.unwrap_or(now);
        let eviction_cost = |slot| self.eviction_cost(slot, fresh);
        // A bucket that is full may use a free slot, but nothing is evicted for it.
        let is_full = eviction_cost(new) == 0;
        let evict = evict_at.is_some() && !is_full;
        let claim = self.pair(location).claim(new, token, evict, eviction_cost, |slot| {
            self.evicted.add(u64::from(self.debt(slot, fresh) > 0));
            self.unreported.add(slot.pending() * self.quantum_of(slot));
        });
        match claim {
            Claim::Full if is_full => Claim::Taken { displaced: false },
            claim => claim,
        }
    }

    /// What is lost with a slot: the share of the burst that its tag could take again. Hits that
    /// have yet to be reported are worth the least there is.
    fn eviction_cost(&self, slot: Slot, now: u64) -> EvictionCost {
        let under_way = slot.is_reserved() && !slot.is_given_up();
        let unheard = slot.pending() > 0 && self.is_exchanged(now);
        self.debt(slot, now).max(u64::from(under_way || unheard))
    }

    fn debt(&self, slot: Slot, now: u64) -> u64 {
        self.scale_of(slot).map_or(0, |scale| scale.share_used(slot.tat(), now))
    }

    /// The TAT of a slot, in ticks of the rule that is asked about.
    #[inline]
    fn tat_of(&self, slot: Slot, key: Key, scale: &Scale, now: u64) -> Tat {
        match slot.rule() == key.rule {
            true => slot.tat(),
            false => self.converted(slot, scale, now),
        }
    }

    /// A bucket that was counted by another rule, an earlier one or another process's.
    #[cold]
    fn converted(&self, slot: Slot, scale: &Scale, now: u64) -> Tat {
        self.scale_of(slot).map_or(0, |other| carry_over(&other, scale, slot.tat(), now))
    }

    /// How a slot is counted; nothing: its rule makes no sense, and so neither does the slot.
    fn scale_of(&self, slot: Slot) -> Option<Scale> {
        self.region.rule(slot.rule())?.scale()
    }

    /// Whether the fingerprint of every bucket can be told, as an exchange needs it.
    pub(crate) fn has_full_fingerprints(&self) -> bool {
        self.region.lines().len() >= MIN_SHARED_LINES
    }

    /// Asks for a bucket's line to be brought near.
    #[inline]
    pub(crate) fn prefetch(&self, key: Key) {
        self.region.lines()[self.location(key).home].prefetch();
    }

    /// Bytes that the table takes.
    pub(crate) fn bytes(&self) -> usize {
        self.region.geometry().bytes()
    }

    /// How many slots there are.
    pub(crate) fn slots(&self) -> usize {
        self.region.lines().len() * SLOTS
    }

    #[inline]
    fn location(&self, key: Key) -> Location {
        Location::of(key.fingerprint, self.region.lines().len())
    }

    #[inline]
    fn pair(&self, location: Location) -> Pair<'_> {
        let lines = self.region.lines();
        let second = &lines[location.second(lines.len())];
        Pair { home: &lines[location.home], second, mark: location.mark }
    }

    fn line_of(&self, location: Location, displaced: bool) -> usize {
        match displaced {
            false => location.home,
            true => location.second(self.region.lines().len()),
        }
    }
}

#[cfg(test)]
mod tests;
