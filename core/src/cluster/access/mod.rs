//! The table as an exchanger sees it: what was admitted here goes out, what was admitted elsewhere
//! comes in, and what has to be remembered between two exchangers lies in the table.
//!
//! Tags are known by fingerprint only. Times are nanoseconds since the table's zero.

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

/// How many entries ahead their lines are asked for.
const AHEAD: usize = 16;
/// Hits are never told to be older.
const MAX_AGE_NS: u64 = 15_000_000_000;

/// A throttle's table.
#[derive(Clone)]
pub struct Exchange {
    host: Arc<Host>,
    rules: Rules,
    /// Keeps the indexes of the throttle's own rules.
    _hold: Option<Arc<RuleHold>>,
}

/// What waits to be reported of one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingBucket {
    /// Hits: quanta of the rule.
    pub hits: u64,
    /// How much of the burst is used, in 2^-32 of it; above 2^32 in debt.
    pub used: u64,
}

/// What was admitted for one tag under one rule since the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainedEntry {
    /// The identity of the rule.
    pub rule: u64,
    /// Units to a hit.
    pub quantum: u64,
    /// Stands for domain, rule and tag.
    pub fingerprint: u64,
    /// Quanta.
    pub hits: u64,
    /// When these hits began, if all that is in the bucket was admitted here.
    pub start_ns: u64,
    /// Whether less than a tenth of the burst is left.
    pub saturated: bool,
}

/// What a peer admitted for one tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerEntry {
    /// Stands for domain, rule and tag.
    pub fingerprint: u64,
    /// Units.
    pub units: u64,
    /// Whether the peer had less than a tenth of the burst left.
    pub saturated: bool,
}

/// What became of peers' entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChargeCounts {
    /// Entries charged.
    pub charged: u64,
    /// Entries that were too late to be charged.
    pub skipped: u64,
}

/// How much of its burst a tag has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketLevel {
    /// The identity of the rule.
    pub rule: u64,
    /// Stands for domain, rule and tag.
    pub fingerprint: u64,
    /// In sixteenths of a unit, rounded down.
    pub used_16ths: u64,
}

impl Exchange {
    pub(crate) fn new(host: Arc<Host>, domains: &[Domain]) -> Exchange {
        let hold = domains.first().map(|domain| Arc::clone(&domain.0.hold));
        let rules = domains.iter().flat_map(Domain::rules);
        Exchange { host, rules: Rules::new(rules), _hold: hold }
    }

    /// The table's time.
    pub fn now(&self) -> u64 {
        self.host.now()
    }

    /// Says that the exchange goes on: without a word for 15 seconds, hits are no longer counted
    /// for peers, and checks have no tolerance.
    pub fn keep_alive(&self, now: u64) {
        self.host.table.set_exchanged(now);
    }

    /// The right to run the exchange, unless another process of the table has it.
    #[cfg(target_os = "linux")]
    pub fn try_lock(&self) -> std::io::Result<Option<Lock>> {
        Lock::try_new(&self.host.rule_users)
    }

    /// Whether several processes may have the table.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.host.rule_users, RuleUsers::Locked(_))
    }

    /// How long nobody has said so; nothing: nobody ever has.
    pub fn since_exchange(&self, now: u64) -> Option<u64> {
        self.host.table.since_exchange(now)
    }

    /// Whether the fingerprint of every bucket can be told: a table may be too small.
    pub fn has_full_fingerprints(&self) -> bool {
        self.host.table.has_full_fingerprints()
    }

    /// The rule with this identity, whose index means it as long as the answer is kept: the
    /// throttle's own, or one that was learned and is still there.
    pub fn rule(&self, id: u64) -> Option<RuleInUse> {
        let (rule, is_own) = self.rules.of_id(id)?;
        if is_own {
            return Some(RuleInUse::own(*rule));
        }
        self.in_use(*rule).or_else(|| {
            // Its index means another rule by now.
            let mut found = self.host.table.rules().filter(|(_, found, _)| *found == id);
            found.find_map(|(index, id, scale)| self.in_use(ExchangeRule::new(id, index, scale)))
        })
    }

    fn in_use(&self, rule: ExchangeRule) -> Option<RuleInUse> {
        let (users, table) = (&self.host.rule_users, &self.host.table);
        let hold = users.hold_one(table, rule.index, (rule.id, rule.scale))?;
        Some(RuleInUse::held(rule, hold))
    }

    /// The throttle's rules, and those that were learned.
    pub fn rules(&self) -> &[ExchangeRule] {
        self.rules.all()
    }

    /// Stands for names, rates and bursts of the throttle's own rules: the same on all nodes that
    /// have the same.
    pub fn rules_hash(&self) -> u64 {
        self.rules.hash()
    }

    /// Looks in the table for rules of other processes, whose buckets peers report as well. Those
    /// that are gone are forgotten.
    pub fn refresh_rules(&mut self) {
        let found = self.host.table.rules();
        self.rules.refresh(found.map(|(index, id, scale)| ExchangeRule::new(id, index, scale)));
    }

    /// Hands over all hits that were not handed over before and that `due` says are due. Hits of a
    /// rule that is not known always are. With `all` also those of buckets that a killed process
    /// may have left unmarked: that looks at the whole table.
    pub fn drain(
        &self,
        now: u64,
        all: bool,
        mut due: impl FnMut(&ExchangeRule, &PendingBucket) -> bool,
        mut out: impl FnMut(DrainedEntry),
    ) {
        let table = &self.host.table;
        // Read while the bucket is in its slot: only so long its index means that rule.
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

    /// The rule of a bucket, also of one that another process has.
    fn rule_of(&self, key: Key) -> Option<ExchangeRule> {
        self.rules.own_of_index(key.rule).copied().or_else(|| {
            let (id, scale) = self.host.table.rule(key.rule)?;
            Some(ExchangeRule::new(id, key.rule, scale))
        })
    }

    /// Charges what peers admitted under a rule, the first of it at `then`. What is `late` is
    /// charged only where it matters: if less than a tenth of the burst is left, there or here.
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
                // Also if the bucket is full again by now: hits of other nodes from the same moment
                // may still be on their way, and only the sum of all of them counts.
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

    /// Whether less than a tenth of a tag's burst is left.
    pub fn is_saturated(&self, rule: &ExchangeRule, now: u64, fingerprint: u64) -> bool {
        let tat = self.host.table.read(rule.key(fingerprint), &rule.scale, now);
        rule.scale.is_saturated(tat, now)
    }

    /// The tags whose buckets are not full, those that have used most of their burst first. Looks
    /// at the whole table.
    pub fn bucket_levels(&self, now: u64, most: usize) -> Vec<BucketLevel> {
        let mut levels = Vec::new();
        let sort = |levels: &mut Vec<(u64, BucketLevel)>| {
            levels.sort_unstable_by_key(|(used, level)| (u64::MAX - used, level.fingerprint));
            levels.truncate(most);
        };
        self.host.table.each(now, |Bucket { key, hits, tat }, rule, scale| {
            // Without what is yet to be reported: it will be charged by that report.
            let used_16ths = scale.used_16ths(scale.before(tat, hits), now);
            let level = BucketLevel { rule, fingerprint: key.fingerprint, used_16ths };
            levels.push((scale.share_used(tat, now), level));
            // Twice as many as are wanted, so that sorting is seldom.
            if levels.len() >= most.max(1000).saturating_mul(2) {
                sort(&mut levels);
            }
        });
        sort(&mut levels);
        levels.into_iter().map(|(_, level)| level).collect()
    }

    /// Takes a level over from a peer: at least so much of the burst is used.
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
