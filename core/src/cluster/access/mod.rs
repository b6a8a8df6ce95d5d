//! The table as the exchange uses it: it takes the hits that were admitted here, charges the hits
//! that peers admitted, and stores what the next exchanging process needs.
//!
//! Tags are identified by their fingerprints only. Times are nanoseconds since the table's zero.

mod rule;
mod shared_state;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::sync::Arc;

use self::rule::Rules;
pub use self::rule::{ExchangeRule, RuleInUse};
use crate::domain::{Domain, Host};
#[cfg(target_os = "linux")]
pub use crate::os::exchange_lock::Lock;
use crate::table::rule_users::{RuleHold, RuleUsers};
use crate::table::{Bucket, BucketUpdate, Key};
pub use crate::table::{PeerStatus, RawEvent};

/// How many entries ahead a line of the table is prefetched.
const AHEAD: usize = 16;
/// The greatest age of hits in a report, in nanoseconds.
const MAX_AGE_NS: u64 = 15_000_000_000;

/// The table of a throttle, with the rules by which the exchange charges.
#[derive(Clone)]
pub struct Exchange {
    host: Arc<Host>,
    rules: Rules,
    /// Prevents the indexes of the throttle's own rules from being reused.
    _hold: Option<Arc<RuleHold>>,
}

/// The state of one bucket that has pending hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingBucket {
    /// Pending hits, in quanta of the rule.
    pub hits: u64,
    /// The used part of the burst, in units of 2^-32 of the burst. Above 2^32 the bucket is in
    /// debt.
    pub used: u64,
}

/// The hits that one tag had under one rule since they were last taken out of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainedEntry {
    /// The identity of the rule.
    pub rule: u64,
    /// Units per hit.
    pub quantum: u64,
    /// The fingerprint of domain, rule and tag.
    pub fingerprint: u64,
    /// Number of hits, in quanta.
    pub hits: u64,
    /// When the first of these hits was admitted, assuming that all hits in the bucket were
    /// admitted here.
    pub start_ns: u64,
    /// Whether less than a tenth of the burst is left here.
    pub saturated: bool,
}

/// The units that a peer admitted for one tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerEntry {
    /// The fingerprint of domain, rule and tag.
    pub fingerprint: u64,
    /// Number of units.
    pub units: u64,
    /// Whether less than a tenth of the burst was left at the peer.
    pub saturated: bool,
}

/// The numbers of entries that `charge` handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChargeCounts {
    /// Entries charged.
    pub charged: u64,
    /// Late entries that were not charged.
    pub skipped: u64,
}

/// The used part of the burst of one tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketLevel {
    /// The identity of the rule.
    pub rule: u64,
    /// The fingerprint of domain, rule and tag.
    pub fingerprint: u64,
    /// Used units, in sixteenths of a unit, rounded down.
    pub used_16ths: u64,
}

impl Exchange {
    pub(crate) fn new(host: Arc<Host>, domains: &[Domain]) -> Exchange {
        let hold = domains.first().map(|domain| Arc::clone(&domain.0.hold));
        let rules = domains.iter().flat_map(Domain::rules);
        Exchange { host, rules: Rules::new(rules), _hold: hold }
    }

    /// The current time of the table, in nanoseconds since its zero.
    pub fn now(&self) -> u64 {
        self.host.now()
    }

    /// Marks the exchange as running. If this is not called for 15 seconds, checks no longer count
    /// hits for peers and have no tolerance.
    pub fn keep_alive(&self, now: u64) {
        self.host.table.set_exchanged(now);
    }

    /// Takes the lock of the process that runs the exchange. Returns `None` if another process of
    /// the table holds it.
    ///
    /// # Errors
    /// The system cannot open or lock the file.
    #[cfg(target_os = "linux")]
    pub fn try_lock(&self) -> std::io::Result<Option<Lock>> {
        Lock::try_new(&self.host.rule_users)
    }

    /// Returns true if other processes may use the table.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.host.rule_users, RuleUsers::Locked(_))
    }

    /// Returns the time since the last call of `keep_alive`, or `None` if there was none.
    pub fn since_exchange(&self, now: u64) -> Option<u64> {
        self.host.table.since_exchange(now)
    }

    /// Returns true if the fingerprint of every bucket can be recovered. A table that is too small
    /// does not store enough bits of it.
    pub fn has_full_fingerprints(&self) -> bool {
        self.host.table.has_full_fingerprints()
    }

    /// Returns the rule with this identity. Its index keeps its meaning while the result exists.
    /// This is the throttle's own rule, or one of another process that is still in the table.
    pub fn rule(&self, id: u64) -> Option<RuleInUse> {
        let (rule, is_own) = self.rules.of_id(id)?;
        if is_own {
            return Some(RuleInUse::own(*rule));
        }
        self.in_use(*rule).or_else(|| {
            // The index of the rule has been reused.
            let mut found = self.host.table.rules().filter(|(_, found, _)| *found == id);
            found.find_map(|(index, id, scale)| self.in_use(ExchangeRule::new(id, index, scale)))
        })
    }

    fn in_use(&self, rule: ExchangeRule) -> Option<RuleInUse> {
        let (users, table) = (&self.host.rule_users, &self.host.table);
        let hold = users.hold_one(table, rule.index, (rule.id, rule.scale))?;
        Some(RuleInUse::held(rule, hold))
    }

    /// The throttle's own rules, and those of other processes that `refresh_rules` found.
    pub fn rules(&self) -> &[ExchangeRule] {
        self.rules.all()
    }

    /// Returns a hash of the names, rates and bursts of the throttle's own rules. It is equal on
    /// all nodes with equal rules.
    pub fn rules_hash(&self) -> u64 {
        self.rules.hash()
    }

    /// Updates the list of other processes' rules from the table. Peers report buckets of these
    /// rules, too. Rules that are no longer in the table are removed.
    pub fn refresh_rules(&mut self) {
        let found = self.host.table.rules();
        self.rules.refresh(found.map(|(index, id, scale)| ExchangeRule::new(id, index, scale)));
    }

    /// Takes pending hits out of the table and passes them to `out`: those for which `due` returns
    /// true, and all hits of rules that are not in `rules`. With `all`, searches the whole table
    /// instead of only the lines that are marked as changed, which also finds hits of a process
    /// that was killed before it marked a line.
    pub fn drain(
        &self,
        now: u64,
        all: bool,
        mut due: impl FnMut(&ExchangeRule, &PendingBucket) -> bool,
        mut out: impl FnMut(DrainedEntry),
    ) {
        let table = &self.host.table;
        // The rule is looked up while the bucket is in its slot: after that the index may be
        // reused.
        let rule_of_last = Cell::new(None);
        let is_due = |bucket: &Bucket| {
            let rule = self.rule_of(bucket.key);
            rule_of_last.set(rule);
            let known = rule.filter(|rule| self.rules.contains(rule));
            known.is_none_or(|rule| {
                let used = rule.scale.share_used(bucket.tat, now);
                due(&rule, &PendingBucket { hits: bucket.hits, used })
            })
        };
        table.drain(all, is_due, |bucket| match rule_of_last.get() {
            Some(rule) => out(drained_entry(&rule, &bucket, now)),
            None => table.unreported.add(bucket.hits),
        });
    }

    /// Returns the rule of a bucket, which may be a rule of another process.
    fn rule_of(&self, key: Key) -> Option<ExchangeRule> {
        self.rules.own_of_index(key.rule).copied().or_else(|| {
            let (id, scale) = self.host.table.rule(key.rule)?;
            Some(ExchangeRule::new(id, key.rule, scale))
        })
    }

    /// Charges units that a peer admitted under a rule, the first of them at `then`. If `late` is
    /// true, charges only tags of which less than a tenth of the burst is left, at the peer or
    /// here.
    pub fn charge(
        &self,
        rule: &ExchangeRule,
        now: u64,
        then: u64,
        late: bool,
        entries: impl Iterator<Item = PeerEntry> + Clone,
    ) -> ChargeCounts {
        let (host, scale) = (&self.host, &rule.scale);
        let mut ahead = entries.clone();
        for entry in ahead.by_ref().take(AHEAD) {
            host.table.prefetch(rule.key(entry.fingerprint));
        }
        let mut done = ChargeCounts::default();
        for entry in entries {
            if let Some(next) = ahead.next() {
                host.table.prefetch(rule.key(next.fingerprint));
            }
            let is_charged = host.update(scale, rule.key(entry.fingerprint), now, |tat| {
                let answer = !late || entry.saturated || scale.is_saturated(tat, now);
                // Charged even if the bucket is full again by now: hits of other nodes from the
                // same time may still arrive, and only their sum may exceed the limit.
                let next = if answer { scale.charge(tat, then, entry.units) } else { tat };
                BucketUpdate { tat: next, hits: 0, answer }
            });
            match is_charged {
                true => done.charged += 1,
                false => done.skipped += 1,
            }
        }
        done
    }

    /// Returns true if less than a tenth of a tag's burst is left.
    pub fn is_saturated(&self, rule: &ExchangeRule, now: u64, fingerprint: u64) -> bool {
        let tat = self.host.table.read(rule.key(fingerprint), &rule.scale, now);
        rule.scale.is_saturated(tat, now)
    }

    /// Returns the levels of at most `most` tags whose buckets are not full, those with the
    /// greatest used part of their burst first. Reads the whole table.
    pub fn bucket_levels(&self, now: u64, most: usize) -> Vec<BucketLevel> {
        let mut levels = Vec::new();
        let sort = |levels: &mut Vec<(u64, BucketLevel)>| {
            levels.sort_unstable_by_key(|(used, level)| (u64::MAX - used, level.fingerprint));
            levels.truncate(most);
        };
        self.host.table.each(now, |Bucket { key, hits, tat }, rule, scale| {
            // Pending hits are excluded, because the report that contains them will charge them.
            let used_16ths = scale.used_16ths(scale.before(tat, hits), now);
            let level = BucketLevel { rule, fingerprint: key.fingerprint, used_16ths };
            levels.push((scale.share_used(tat, now), level));
            // Sorts only after twice as many as needed have been collected.
            if levels.len() >= most.max(1000).saturating_mul(2) {
                sort(&mut levels);
            }
        });
        sort(&mut levels);
        levels.into_iter().map(|(_, level)| level).collect()
    }

    /// Raises the used part of a tag's burst to a level from a snapshot. A higher level stays.
    pub fn raise_level(&self, rule: &ExchangeRule, now: u64, fingerprint: u64, used_16ths: u64) {
        let level = rule.scale.level(now, used_16ths);
        self.host.update(&rule.scale, rule.key(fingerprint), now, |tat| BucketUpdate {
            tat: tat.max(level),
            hits: 0,
            answer: (),
        });
    }
}

fn drained_entry(rule: &ExchangeRule, bucket: &Bucket, now: u64) -> DrainedEntry {
    let Bucket { key, hits, tat } = *bucket;
    let start = rule.scale.start(tat, hits);
    DrainedEntry {
        rule: rule.id,
        quantum: rule.quantum(),
        fingerprint: key.fingerprint,
        hits,
        start_ns: start.clamp(now.saturating_sub(MAX_AGE_NS), now),
        saturated: rule.scale.is_saturated(tat, now),
    }
}
