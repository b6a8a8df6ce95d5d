//! A domain: a named list of rules, and every call that an application makes about a tag.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::TableClock;
use crate::cluster::node::ClusterNode;
use crate::config::TableConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::limit::batch::{self, BATCH};
use crate::limit::bucket::{MAX_TAT, Scale, Tat};
use crate::limit::decide;
use crate::limit::decision::{CheckOptions, Decision};
use crate::limit::pacing::Pacing;
use crate::limit::rate::Burst;
use crate::records::Value;
use crate::stats::{Count, Counters};
use crate::table::earlier::EarlierBuckets;
use crate::table::fingerprint::Fingerprints;
use crate::table::rule_users::{RuleHold, RuleUsers};
use crate::table::{BucketUpdate, Key, Table};

/// A handle to a domain: cheap to clone, usable from any thread.
#[derive(Clone)]
pub struct Domain(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) dry_run: bool,
    pub(crate) rules: Vec<ActiveRule>,
    /// Keeps the indexes of the rules.
    pub(crate) hold: Arc<RuleHold>,
    pub(crate) host: Arc<Host>,
    /// Its part in a cluster.
    pub(crate) node: Option<Arc<ClusterNode>>,
}

/// What all domains of a throttle share.
pub(crate) struct Host {
    pub(crate) table: Table,
    /// The table's settings, with the name that was found, if it is shared by one.
    pub(crate) named: Option<TableConfig>,
    pub(crate) clock: TableClock,
    /// The key of the fingerprints.
    pub(crate) key: [u64; 2],
    pub(crate) counters: Counters,
    pub(crate) closed: AtomicBool,
    pub(crate) warnings: Vec<String>,
    pub(crate) rule_users: RuleUsers,
    pub(crate) earlier: EarlierBuckets,
    /// Whether tags over their limit wait for turns.
    pub(crate) pacing: Option<Pacing>,
}

/// A rule at work in a domain.
#[derive(Clone, Debug)]
pub struct ActiveRule {
    pub(crate) name: String,
    pub(crate) scale: Scale,
    pub(crate) charge_refused: bool,
    /// Its identity, equal wherever domain and rule have these names.
    pub(crate) id: u64,
    /// Its index in the table.
    pub(crate) index: u16,
    /// How much later than their time checks may pass while the table is exchanged: the time that
    /// a report of this rule may wait.
    pub(crate) tolerance_ns: u64,
    /// Whether they may be later still by the table's slack: the time that a report may be under
    /// way.
    pub(crate) slack: bool,
    pub(crate) fingerprints: Fingerprints,
}

impl ActiveRule {
    /// The rule's name, unique in its domain.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rule's burst in units.
    pub fn burst(&self) -> u64 {
        self.scale.burst()
    }

    /// The time in which an empty bucket fills.
    pub fn window(&self) -> Duration {
        Duration::from_nanos(self.scale.fill_ns())
    }

    #[inline]
    pub(crate) fn key(&self, tag: &[u8]) -> Key {
        Key { fingerprint: self.fingerprints.of(tag), rule: self.index }
    }
}

impl Domain {
    /// The domain's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The domain's rules, in the order in which they were given.
    pub fn rules(&self) -> &[ActiveRule] {
        &self.0.rules
    }

    /// Whether nothing is refused or told to wait here, only counted.
    pub fn is_dry_run(&self) -> bool {
        self.0.dry_run
    }

    /// The rule that refused, if one did.
    pub fn refused_by(&self, decision: &Decision) -> Option<&str> {
        self.name_of(decision.rule)
    }

    /// The rule whose figures a decision has, also when it did not refuse.
    pub fn decided_by(&self, decision: &Decision) -> Option<&str> {
        self.name_of(decision.deciding)
    }

    fn name_of(&self, rule: Option<usize>) -> Option<&str> {
        rule.and_then(|index| self.0.rules.get(index)).map(ActiveRule::name)
    }

    /// What the fields of a decision hold, with the names of rules for their indexes.
    #[doc(hidden)]
    pub fn values<'a>(&'a self, decision: &'a Decision) -> [Value<'a>; Decision::FIELDS.len()] {
        decision.values().map(|value| match value {
            Value::Rule(index) => Value::Name(self.name_of(*index)),
            other => other,
        })
    }

    /// Asks for one unit, and takes it if it passes.
    pub fn check(&self, tag: impl AsRef<[u8]>) -> Result<Decision> {
        self.check_with(tag, CheckOptions::default())
    }

    /// Checks with these options, and takes the units if the check passes.
    #[inline]
    pub fn check_with(&self, tag: impl AsRef<[u8]>, options: CheckOptions) -> Result<Decision> {
        let options = self.begin(options)?;
        Ok(decide::check(&self.0, tag.as_ref(), options))
    }

    /// Asks for one unit, and takes it if it passes: yes or no.
    #[inline]
    pub fn allow(&self, tag: impl AsRef<[u8]>) -> Result<bool> {
        self.allow_with(tag, CheckOptions::default())
    }

    /// Checks with these options, and takes the units if the check passes: yes or no.
    #[inline(always)]
    pub fn allow_with(&self, tag: impl AsRef<[u8]>, options: CheckOptions) -> Result<bool> {
        let options = self.begin(options)?;
        Ok(decide::allow(&self.0, tag.as_ref(), options))
    }

    /// Asks for one unit for each tag in turn, and takes what passes. Much faster than one call for
    /// each where tags are many. The answers are in the order of the tags; there must be room for
    /// all of them.
    pub fn allow_many<T: AsRef<[u8]>>(&self, tags: &[T], allowed: &mut [bool]) -> Result<()> {
        self.ready()?;
        if allowed.len() != tags.len() {
            let message =
                format!("{} tags and room for {} answers; give as many", tags.len(), allowed.len());
            return Err(Error::new(ErrorKind::Argument, message));
        }
        for (tags, allowed) in tags.chunks(BATCH).zip(allowed.chunks_mut(BATCH)) {
            batch::allow(&self.0, tags, allowed);
        }
        Ok(())
    }

    /// The decision that a check for one unit would get. Takes nothing.
    pub fn peek(&self, tag: impl AsRef<[u8]>) -> Result<Decision> {
        self.peek_with(tag, CheckOptions::default())
    }

    /// The decision that `check_with` would get. Takes nothing.
    pub fn peek_with(&self, tag: impl AsRef<[u8]>, options: CheckOptions) -> Result<Decision> {
        let options = self.begin(options)?;
        Ok(decide::peek(&self.0, tag.as_ref(), options))
    }

    /// Gives units back to every rule: for work that was not done after all, or a wait that was
    /// given up.
    pub fn refund(&self, tag: impl AsRef<[u8]>, cost: u64) -> Result<()> {
        self.ready()?;
        let host = &self.0.host;
        let now = host.now();
        for rule in &self.0.rules {
            host.refund(&rule.scale, rule.key(tag.as_ref()), now, cost);
        }
        Ok(())
    }

    /// Fills the tag's buckets.
    pub fn reset(&self, tag: impl AsRef<[u8]>) -> Result<()> {
        self.each_bucket(tag.as_ref(), |_, _, _| 0)
    }

    /// Charges units that were used elsewhere, the first of them `age` ago, without asking. May
    /// take a bucket below zero.
    pub fn charge_local(&self, tag: impl AsRef<[u8]>, cost: u64, age: Duration) -> Result<()> {
        let age = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        self.each_bucket(tag.as_ref(), |scale, tat, now| {
            scale.charge(tat, now.saturating_sub(age), cost)
        })
    }

    /// Charges units that were used here without asking, and tells peers. May take a bucket below
    /// zero; gives the time until none of the tag's buckets is.
    pub fn charge(&self, tag: impl AsRef<[u8]>, cost: u64) -> Result<Duration> {
        self.charge_ahead(tag, cost, Duration::ZERO)
    }

    /// Like [`Domain::charge`], for units that will be used `ahead` of now: the bucket does not
    /// refill before they are used. Peers count them from the time when they hear of them.
    pub fn charge_ahead(
        &self,
        tag: impl AsRef<[u8]>,
        cost: u64,
        ahead: Duration,
    ) -> Result<Duration> {
        self.ready()?;
        let host = &self.0.host;
        let now = host.now();
        let used_at = now.saturating_add(u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX));
        let mut debt = 0;
        for rule in &self.0.rules {
            let (scale, key) = (&rule.scale, rule.key(tag.as_ref()));
            let tat = host.update(scale, key, now, |tat| {
                let next = scale.charge(tat, used_at, cost);
                // A bucket that is full counts from then on, not from its old TAT.
                let full = scale.charge(tat, used_at, 0);
                BucketUpdate {
                    tat: next,
                    hits: scale.hits(full, next, key.fingerprint),
                    answer: next,
                }
            });
            debt = debt.max(scale.reset_after(tat, now).saturating_sub(scale.fill_ns()));
        }
        Ok(Duration::from_nanos(debt))
    }

    /// Changes the tag's bucket of every rule. Peers do not hear of it.
    fn each_bucket(&self, tag: &[u8], next: impl Fn(&Scale, Tat, u64) -> Tat) -> Result<()> {
        self.ready()?;
        let host = &self.0.host;
        let now = host.now();
        for rule in &self.0.rules {
            let step = |tat| BucketUpdate { tat: next(&rule.scale, tat, now), hits: 0, answer: () };
            host.update(&rule.scale, rule.key(tag), now, step);
        }
        Ok(())
    }

    /// Returns a warning for the log if a bucket of this tag still misses units that an earlier
    /// process took from a named table. Call it when a check was refused. A throttle gives this
    /// warning once. It names the table and the command that removes it.
    ///
    /// Such a refusal is right in production, but surprises during development and in tests.
    pub fn earlier_process_warning(&self, tag: impl AsRef<[u8]>) -> Option<String> {
        let Inner { host, rules, .. } = &*self.0;
        let fingerprints = rules.iter().map(|rule| rule.key(tag.as_ref()).fingerprint);
        if !host.earlier.report(host.now(), fingerprints) {
            return None;
        }
        let table = host.named.as_ref()?;
        let name = table.name()?;
        Some(format!(
            "a client was refused because of requests that were counted before this program opened \
             the table {name:?}; a named table outlives its processes; for an empty one, run `{}` \
             before the next start, or set DTHROTTLE_FRESH_TABLES=1 in tests",
            table.remove_command(name),
        ))
    }

    /// What must hold before a check: the throttle is open, and the cost can pass at all. Returns
    /// the question with its options made consistent.
    #[inline(always)]
    fn begin(&self, options: CheckOptions) -> Result<CheckOptions> {
        self.ready()?;
        // No burst is below one.
        if options.cost <= 1 {
            return Ok(options);
        }
        self.begin_large(options)
    }

    fn begin_large(&self, options: CheckOptions) -> Result<CheckOptions> {
        if options.partial {
            return Ok(options.allow_debt(false));
        }
        if options.allow_debt {
            return Ok(CheckOptions { cost: options.cost.min(Burst::MAX), ..options });
        }
        match self.0.rules.iter().find(|rule| options.cost > rule.scale.burst()) {
            None => Ok(options),
            Some(rule) => Err(self.cost_above_burst(options.cost, rule)),
        }
    }

    #[cold]
    fn cost_above_burst(&self, cost: u64, rule: &ActiveRule) -> Error {
        let message = format!(
            "cost {cost} can never pass: the burst of rule {:?} in domain {:?} is {}; \
             ask for less, or for a partial grant, allow debt, or raise the burst",
            rule.name,
            self.0.name,
            rule.burst()
        );
        Error::new(ErrorKind::Cost, message)
    }

    /// The throttle is open, and its exchange runs, if it has one.
    #[inline]
    fn ready(&self) -> Result<()> {
        self.check_open()?;
        if let Some(node) = &self.0.node {
            node.start();
        }
        Ok(())
    }

    /// Whether the throttle is open; otherwise the error that every call gives.
    #[doc(hidden)]
    #[inline]
    pub fn check_open(&self) -> Result<()> {
        // Relaxed: a call that races with close may be before or after it.
        if self.0.host.closed.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Closed, "the throttle is closed; open a new one"));
        }
        Ok(())
    }
}

impl Host {
    /// Nanoseconds since the table's zero.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Gives units back to a bucket. Returns the bucket after it.
    pub(crate) fn refund(&self, scale: &Scale, key: Key, now: u64, units: u64) -> Tat {
        self.update(scale, key, now, |tat| {
            let next = scale.refund(tat, units);
            BucketUpdate { tat: next, hits: scale.hits(tat, next, key.fingerprint), answer: next }
        })
    }

    /// One atomic step on a bucket. Without room for it, the step is made on a full bucket and
    /// forgotten: the throttle fails open.
    #[inline(always)]
    pub(crate) fn update<R>(
        &self,
        scale: &Scale,
        key: Key,
        now: u64,
        step: impl Fn(Tat) -> BucketUpdate<R> + Copy,
    ) -> R {
        match self.table.update_at_home(key, scale, now, step) {
            Some(answer) => answer,
            None => self.update_anywhere(scale, key, now, step),
        }
    }

    #[inline(never)]
    fn update_anywhere<R>(
        &self,
        scale: &Scale,
        key: Key,
        now: u64,
        step: impl Fn(Tat) -> BucketUpdate<R>,
    ) -> R {
        let mut clamped = false;
        let mut watched = |tat| {
            let next = step(tat);
            clamped = next.tat == MAX_TAT && tat != MAX_TAT;
            next
        };
        let counted = self
            .table
            .update(key, scale, now, None, &mut watched)
            .or_else(|| self.table.update(key, scale, now, Some(self.now()), &mut watched));
        if clamped {
            self.counters.add_one(Count::Clamped);
        }
        counted.unwrap_or_else(|| {
            self.counters.add_one(Count::FailedOpen);
            step(0).answer
        })
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain")
            .field("name", &self.0.name)
            .field("rules", &self.0.rules)
            .finish_non_exhaustive()
    }
}
