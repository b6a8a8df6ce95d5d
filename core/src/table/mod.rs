//! The bucket table: a fixed number of slots in memory that several processes may share.
//!
//! Every change to a bucket is one atomic step without locks, so a process that is killed at any
//! instruction leaves a working table. A bucket is identified by its fingerprint and its rule. A
//! full bucket equals an absent one, so buckets are never deleted: a new bucket takes over the slot
//! of a full one.
//!
//! This module uses the arithmetic of `limit/bucket.rs` and the memory that `os/` provides. Only
//! `open` uses the configuration. Nothing here depends on domains or on the engine.

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

/// Identifies a bucket in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) fingerprint: u64,
    /// Index into the table's rules.
    pub(crate) rule: u16,
}

/// The result of one step on a bucket.
pub(crate) struct BucketUpdate<R> {
    pub(crate) tat: Tat,
    /// Change of the pending hits. Negative if unreported units are refunded.
    pub(crate) hits: i64,
    pub(crate) answer: R,
}

/// A bounded set of buckets. Times are nanoseconds since the table's zero.
pub(crate) struct Table {
    region: Region,
    /// Number of buckets that were evicted before they were full.
    pub(crate) evicted: Counter,
    /// Units admitted here that are never reported to peers.
    pub(crate) unreported: Counter,
}

impl Table {
    pub(crate) fn new(region: Region) -> Table {
        Table { region, evicted: Counter::default(), unreported: Counter::default() }
    }

    /// Creates a table in memory that is still zero.
    pub(crate) fn in_memory(memory: impl Memory + 'static, geometry: Geometry) -> Option<Table> {
        Region::new(Box::new(memory), geometry).map(Table::new)
    }

    /// Number of lines for `tags` tags, so that six tenths of the slots are in use.
    pub(crate) fn lines_for(tags: u64) -> usize {
        let lines = (u128::from(tags) * 10).div_ceil(6 * SLOTS as u128);
        usize::try_from(lines).unwrap_or(usize::MAX)
    }

    /// Returns true if this processor can share a table with other processes.
    pub(crate) fn can_be_shared() -> bool {
        Cell::is_lock_free()
    }

    /// Returns the index of a rule, or `None` if the table's list does not have it.
    pub(crate) fn find_rule(&self, id: u64, scale: &Scale) -> Option<u16> {
        rules::find(self.region.rules(), id, scale)
    }

    /// Adds a rule to the list. See `rules::add`.
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

    /// Returns the index of a rule, which is added if the list does not have it.
    #[cfg(test)]
    pub(crate) fn rule_index(&self, id: u64, scale: &Scale) -> Option<u16> {
        self.find_rule(id, scale).or_else(|| self.add_rule(id, scale, true, |_| true))
    }

    /// Returns the identity and the scale of a rule.
    pub(crate) fn rule(&self, index: u16) -> Option<(u64, Scale)> {
        self.region.rule(index)?.read()
    }

    /// All rules in the list, with their indexes.
    pub(crate) fn rules(&self) -> impl Iterator<Item = (u16, u64, Scale)> {
        let used = rules::used(self.region.rules());
        used.filter_map(|(index, entry)| entry.read().map(|(id, scale)| (index, id, scale)))
    }

    /// Returns the TAT of a bucket in ticks of `scale`.
    pub(crate) fn read(&self, key: Key, scale: &Scale, now: u64) -> Tat {
        let pair = self.pair(self.location(key));
        loop {
            let Some((cell, seen, _)) = pair.find() else { return 0 };
            let slot = cell.load();
            if slot.mark() != seen.mark() {
                continue;
            }
            let tat = self.tat_of(slot, key, scale, now);
            // As long as a slot names a rule, the index of that rule is not reused.
            if slot.rule() == key.rule || cell.load() == slot {
                return tat;
            }
        }
    }

    /// Replaces the TAT of a bucket in its home line under this rule. Returns `None`, without a
    /// change, in any other case, or if `next` returns `None`. The change is not reported to peers.
    #[inline(always)]
    pub(crate) fn replace_at_home(
        &self,
        key: Key,
        next: impl FnOnce(Tat) -> Option<Tat>,
    ) -> Option<Tat> {
        let Location { home, mark, .. } = self.location(key);
        let (cell, old) = self.region.lines()[home].find_under(key.rule, mark)?;
        let tat = next(old.tat())?;
        // Only a successful swap proves that the slot was not torn.
        (tat != old.tat() && tat != MAX_TAT && cell.replace(old, old.with_tat(tat))).then_some(tat)
    }

    /// The fast path of `update`. Returns `None`, without a change, unless the bucket is in its
    /// home line under this rule and the step changes it to a TAT below `MAX_TAT`.
    ///
    /// With this fast path, a check of a tag in the cache takes 464 instructions in a cluster and
    /// 1464 under two rules. Without it, it takes 646 and 1820.
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
        // Only a successful swap proves that the slot was not torn.
        if tat == MAX_TAT || new == old || !cell.replace(old, new) {
            return None;
        }
        self.record_pending(pending, scale, home);
        Some(answer)
    }

    /// Applies one atomic step to a bucket. `step` computes the new state from the TAT. It may run
    /// several times, and its last result counts.
    ///
    /// If the tag has no slot and none is reusable, the bucket with the lowest eviction cost is
    /// evicted. Eviction costs are computed for the time `evict_at`, which must be the present
    /// time: if the process was delayed, `now` may be long past, and buckets that others used since
    /// then would seem deep in debt. With `None` nothing is evicted, and the function returns
    /// `None` without a change.
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
                // Reload, because the value may be torn.
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

    /// Claims a slot for a bucket that has none.
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
            // A full bucket without pending hits equals an absent one.
            return Claim::Taken { displaced: false };
        }
        // Before the claim, so that the page is known to be in use even if this process is killed.
        for displaced in [false, true] {
            self.region.mark_used(self.line_of(location, displaced) / PAGE_LINES);
        }
        let new = Slot::new(location.mark, key.rule, pending, tat);
        // Every claim gets its own token. Relaxed: only the number matters.
        let token = self.region.header().claims.fetch_add(1, Ordering::Relaxed);
        let fresh = evict_at.unwrap_or(now);
        let eviction_cost = |slot| self.eviction_cost(slot, fresh);
        // A full bucket may use a free slot, but it evicts no other bucket.
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

    /// Eviction cost of a slot: the share of the burst that its tag would regain. The cost is at
    /// least 1 while a claim is in progress or hits are unreported.
    fn eviction_cost(&self, slot: Slot, now: u64) -> EvictionCost {
        let under_way = slot.is_reserved() && !slot.is_given_up();
        let unheard = slot.pending() > 0 && self.is_exchanged(now);
        self.debt(slot, now).max(u64::from(under_way || unheard))
    }

    fn debt(&self, slot: Slot, now: u64) -> u64 {
        self.scale_of(slot).map_or(0, |scale| scale.share_used(slot.tat(), now))
    }

    /// The TAT of a slot, in ticks of `scale`, which is the scale of `key.rule`.
    #[inline]
    fn tat_of(&self, slot: Slot, key: Key, scale: &Scale, now: u64) -> Tat {
        match slot.rule() == key.rule {
            true => slot.tat(),
            false => self.converted(slot, scale, now),
        }
    }

    /// The TAT of a bucket that another rule counted, converted to ticks of `scale`.
    #[cold]
    fn converted(&self, slot: Slot, scale: &Scale, now: u64) -> Tat {
        self.scale_of(slot).map_or(0, |other| carry_over(&other, scale, slot.tat(), now))
    }

    /// Returns how a slot is counted, or `None` if its rule index is invalid. Such a slot is
    /// ignored.
    fn scale_of(&self, slot: Slot) -> Option<Scale> {
        self.region.rule(slot.rule())?.scale()
    }

    /// Returns true if the table is large enough to recover the whole fingerprint of every bucket,
    /// which the exchange needs.
    pub(crate) fn has_full_fingerprints(&self) -> bool {
        self.region.lines().len() >= MIN_SHARED_LINES
    }

    /// Prefetches the home line of a bucket.
    #[inline]
    pub(crate) fn prefetch(&self, key: Key) {
        self.region.lines()[self.location(key).home].prefetch();
    }

    /// Size of the table in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.region.geometry().bytes()
    }

    /// Number of slots.
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
