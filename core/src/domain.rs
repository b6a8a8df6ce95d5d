//! A domain: a named list of rules, with all calls that an application makes about a tag.

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

/// A named list of rules. A check of a tag passes if every rule of the domain allows it.
///
/// A domain is a handle to a part of a [`Throttle`](crate::Throttle). It is cheap to clone and can
/// be used from any thread. A `Throttle` dereferences to its default domain, so it has all of these
/// calls too.
///
/// A *tag* is the client that is limited, such as an IP address or an account. It may be any bytes.
/// Each rule counts each tag in its own bucket.
///
/// ```
/// use dthrottle::{ManualClock, Rule, Throttle};
///
/// let throttle = Throttle::builder()
///     .domain("login", [
///         Rule::per_minute(5).name("minute"),
///         Rule::parse("50/day").name("day"),
///     ])
///     .clock(ManualClock::new())
///     .build()?;
/// let login = throttle.domain("login")?;
/// assert!((0..5).all(|_| login.allow("alice").unwrap()));
/// let decision = login.check("alice")?;
/// assert_eq!(login.refused_by(&decision), Some("minute"));
/// # Ok::<(), dthrottle::Error>(())
/// ```
#[derive(Clone)]
pub struct Domain(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) dry_run: bool,
    pub(crate) rules: Vec<ActiveRule>,
    /// Keeps the indexes of the rules from being reused.
    pub(crate) hold: Arc<RuleHold>,
    pub(crate) host: Arc<Host>,
    /// The node of the cluster that the throttle is in.
    pub(crate) node: Option<Arc<ClusterNode>>,
}

/// The state that all domains of a throttle share.
pub(crate) struct Host {
    pub(crate) table: Table,
    /// The settings of a named table, with the name that was used.
    pub(crate) named: Option<TableConfig>,
    pub(crate) clock: TableClock,
    /// The key of the fingerprints.
    pub(crate) key: [u64; 2],
    pub(crate) counters: Counters,
    pub(crate) closed: AtomicBool,
    pub(crate) warnings: Vec<String>,
    pub(crate) rule_users: RuleUsers,
    pub(crate) earlier: EarlierBuckets,
    /// Present if tags that were refused take turns; see `limit/pacing.rs`.
    pub(crate) pacing: Option<Pacing>,
}

/// A rule of a domain in a running throttle; see [`Domain::rules`].
#[derive(Clone, Debug)]
pub struct ActiveRule {
    pub(crate) name: String,
    pub(crate) scale: Scale,
    pub(crate) charge_refused: bool,
    /// Identity of the rule. It depends only on the names of the domain and the rule.
    pub(crate) id: u64,
    /// Its index in the table.
    pub(crate) index: u16,
    /// How much later than their time checks may pass while the table is exchanged: the longest
    /// time that a report of this rule waits before it is sent, in nanoseconds.
    pub(crate) tolerance_ns: u64,
    /// Whether the table's slack is added, which is the time that a report takes to arrive.
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

    /// The domain's rules, in the order of the configuration.
    pub fn rules(&self) -> &[ActiveRule] {
        &self.0.rules
    }

    /// Returns true if the domain is in dry run: it counts refusals and delays, but allows every
    /// check at once.
    pub fn is_dry_run(&self) -> bool {
        self.0.dry_run
    }

    /// The name of the rule that refused, or `None` if the check was not refused. `decision` must
    /// come from this domain.
    pub fn refused_by(&self, decision: &Decision) -> Option<&str> {
        self.name_of(decision.rule)
    }

    /// The name of the rule that determined the figures of a decision, whether or not it refused.
    /// `None` if the domain has no rules. `decision` must come from this domain.
    pub fn decided_by(&self, decision: &Decision) -> Option<&str> {
        self.name_of(decision.deciding)
    }

    fn name_of(&self, rule: Option<usize>) -> Option<&str> {
        rule.and_then(|index| self.0.rules.get(index)).map(ActiveRule::name)
    }

    /// The values of a decision's fields, with names of rules instead of their indexes.
    #[doc(hidden)]
    pub fn values<'a>(&'a self, decision: &'a Decision) -> [Value<'a>; Decision::FIELDS.len()] {
        decision.values().map(|value| match value {
            Value::Rule(index) => Value::Name(self.name_of(*index)),
            other => other,
        })
    }

    /// Checks a tag at a cost of one unit, and takes the unit if the check passes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] after [`Throttle::close`](crate::Throttle::close). Being throttled is
    /// not an error.
    ///
    /// ```
    /// use std::time::Duration;
    /// use dthrottle::{ManualClock, Rule, Throttle};
    ///
    /// let clock = ManualClock::new();
    /// let throttle = Throttle::builder().rule(Rule::per_second(2)).clock(clock).build()?;
    /// let decision = throttle.check("alice")?;
    /// assert!(decision.allowed);
    /// assert_eq!((decision.limit, decision.remaining), (2, 1));
    /// assert_eq!(decision.reset_after, Duration::from_millis(500));
    /// # Ok::<(), dthrottle::Error>(())
    /// ```
    pub fn check(&self, tag: impl AsRef<[u8]>) -> Result<Decision> {
        self.check_with(tag, CheckOptions::default())
    }

    /// Checks a tag with options, and takes the units if the check passes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Cost`] if the cost exceeds the burst of a rule, unless the check is
    /// [partial](CheckOptions::partial) or [allows debt](CheckOptions::allow_debt).
    /// [`ErrorKind::Closed`] after [`Throttle::close`](crate::Throttle::close).
    #[inline]
    pub fn check_with(&self, tag: impl AsRef<[u8]>, mut options: CheckOptions) -> Result<Decision> {
        self.begin(&mut options)?;
        Ok(decide::check(&self.0, tag.as_ref(), options))
    }

    /// Like [`Domain::check`], but only returns whether the check passes. This is faster.
    ///
    /// # Errors
    ///
    /// As for [`Domain::check`].
    ///
    /// ```
    /// use dthrottle::{ManualClock, Rule, Throttle};
    ///
    /// let rule = Rule::per_second(1);
    /// let throttle = Throttle::builder().rule(rule).clock(ManualClock::new()).build()?;
    /// assert!(throttle.allow("203.0.113.7")?);
    /// assert!(!throttle.allow("203.0.113.7")?);
    /// assert!(throttle.allow("203.0.113.8")?);
    /// # Ok::<(), dthrottle::Error>(())
    /// ```
    #[inline]
    pub fn allow(&self, tag: impl AsRef<[u8]>) -> Result<bool> {
        self.allow_with(tag, CheckOptions::default())
    }

    /// Like [`Domain::check_with`], but only returns whether the check passes. This is faster.
    ///
    /// # Errors
    ///
    /// As for [`Domain::check_with`].
    #[inline(always)]
    pub fn allow_with(&self, tag: impl AsRef<[u8]>, mut options: CheckOptions) -> Result<bool> {
        self.begin(&mut options)?;
        Ok(decide::allow(&self.0, tag.as_ref(), options))
    }

    /// Checks several tags at a cost of one unit each, in order. Writes the results to `allowed`,
    /// in the order of the tags. With many tags this is much faster than one call for each.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Argument`] if `allowed` does not have the length of `tags`.
    /// [`ErrorKind::Closed`] after [`Throttle::close`](crate::Throttle::close).
    ///
    /// ```
    /// use dthrottle::{ManualClock, Rule, Throttle};
    ///
    /// let rule = Rule::per_second(1);
    /// let throttle = Throttle::builder().rule(rule).clock(ManualClock::new()).build()?;
    /// let mut allowed = [false; 3];
    /// throttle.allow_many(&["alice", "bob", "alice"], &mut allowed)?;
    /// assert_eq!(allowed, [true, true, false]);
    /// # Ok::<(), dthrottle::Error>(())
    /// ```
    pub fn allow_many<T: AsRef<[u8]>>(&self, tags: &[T], allowed: &mut [bool]) -> Result<()> {
        self.ready()?;
        if allowed.len() != tags.len() {
            let message = format!(
                "`allowed` must have one element per tag, {}, got {}",
                tags.len(),
                allowed.len()
            );
            return Err(Error::new(ErrorKind::Argument, message));
        }
        for (tags, allowed) in tags.chunks(BATCH).zip(allowed.chunks_mut(BATCH)) {
            batch::allow(&self.0, tags, allowed);
        }
        Ok(())
    }

    /// Returns the decision that [`Domain::check`] would make. Takes nothing.
    ///
    /// # Errors
    ///
    /// As for [`Domain::check`].
    pub fn peek(&self, tag: impl AsRef<[u8]>) -> Result<Decision> {
        self.peek_with(tag, CheckOptions::default())
    }

    /// Returns the decision that [`Domain::check_with`] would make. Takes nothing.
    ///
    /// # Errors
    ///
    /// As for [`Domain::check_with`].
    pub fn peek_with(&self, tag: impl AsRef<[u8]>, mut options: CheckOptions) -> Result<Decision> {
        self.begin(&mut options)?;
        Ok(decide::peek(&self.0, tag.as_ref(), options))
    }

    /// Gives units back to every rule, for work that was not done after all, or for a delay that
    /// the caller gave up. A bucket never rises above its burst.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] after [`Throttle::close`](crate::Throttle::close).
    ///
    /// ```
    /// use dthrottle::{ManualClock, Rule, Throttle};
    ///
    /// let rule = Rule::per_second(3);
    /// let throttle = Throttle::builder().rule(rule).clock(ManualClock::new()).build()?;
    /// assert_eq!(throttle.check("alice")?.remaining, 2);
    /// throttle.refund("alice", 1)?;
    /// assert_eq!(throttle.peek("alice")?.remaining, 3);
    /// # Ok::<(), dthrottle::Error>(())
    /// ```
    pub fn refund(&self, tag: impl AsRef<[u8]>, cost: u64) -> Result<()> {
        self.ready()?;
        let host = &self.0.host;
        let now = host.now();
        for rule in &self.0.rules {
            host.refund(&rule.scale, rule.key(tag.as_ref()), now, cost);
        }
        Ok(())
    }

    /// Fills the tag's bucket of every rule. Peers in a cluster are not told.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] after [`Throttle::close`](crate::Throttle::close).
    pub fn reset(&self, tag: impl AsRef<[u8]>) -> Result<()> {
        self.each_bucket(tag.as_ref(), |_, _, _| 0)
    }

    /// Charges units that were used elsewhere, the first of them `age` ago. Only this node's table
    /// is charged, without a report to peers. Never refuses, and may put a bucket in debt.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] after [`Throttle::close`](crate::Throttle::close).
    pub fn charge_local(&self, tag: impl AsRef<[u8]>, cost: u64, age: Duration) -> Result<()> {
        let age = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        self.each_bucket(tag.as_ref(), |scale, tat, now| {
            scale.charge(tat, now.saturating_sub(age), cost)
        })
    }

    /// Charges units that were used here, and reports them to the peers of a cluster. Never
    /// refuses, and may put a bucket in debt. Returns the time until no bucket of the tag is in
    /// debt.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] after [`Throttle::close`](crate::Throttle::close).
    ///
    /// ```
    /// use std::time::Duration;
    /// use dthrottle::{ManualClock, Rule, Throttle};
    ///
    /// let rule = Rule::per_second(10);
    /// let throttle = Throttle::builder().rule(rule).clock(ManualClock::new()).build()?;
    /// assert_eq!(throttle.charge("alice", 10)?, Duration::ZERO);
    /// assert_eq!(throttle.charge("alice", 5)?, Duration::from_millis(500));
    /// assert!(!throttle.allow("alice")?);
    /// # Ok::<(), dthrottle::Error>(())
    /// ```
    pub fn charge(&self, tag: impl AsRef<[u8]>, cost: u64) -> Result<Duration> {
        self.charge_ahead(tag, cost, Duration::ZERO)
    }

    /// Like [`Domain::charge`], for units that will be used at the time `ahead` from now. The
    /// bucket does not refill before that time. Peers charge the units when they receive the
    /// report.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] after [`Throttle::close`](crate::Throttle::close).
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
                // A full bucket counts from `used_at`, not from its old TAT.
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

    /// Changes the tag's bucket of every rule. Nothing is reported to peers.
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

    /// Returns a warning once per throttle, if this tag is short of units because an earlier
    /// process took them. It names the table and how to clear it.
    pub fn earlier_process_warning(&self, tag: impl AsRef<[u8]>) -> Option<String> {
        let Inner { host, rules, .. } = &*self.0;
        let fingerprints = rules.iter().map(|rule| rule.key(tag.as_ref()).fingerprint);
        if !host.earlier.report(host.now(), fingerprints) {
            return None;
        }
        let table = host.named.as_ref()?;
        let name = table.name()?;
        Some(format!(
            "a client was refused because of requests before this process opened \
             the table {name:?}; a named table outlives its processes; for an empty one, run `{}` \
             before the next start, or set DTHROTTLE_FRESH_TABLES=1 in tests",
            table.remove_command(name),
        ))
    }

    /// Validates a check: the throttle must be open, and the cost must be able to pass. Makes the
    /// options consistent.
    #[inline(always)]
    fn begin(&self, options: &mut CheckOptions) -> Result<()> {
        self.ready()?;
        options.allow_debt &= !options.partial;
        if options.allow_debt {
            options.cost = options.cost.min(Burst::MAX);
        } else if options.cost > 1 && !options.partial {
            // Every burst is at least one.
            self.check_cost(options.cost)?;
        }
        Ok(())
    }

    fn check_cost(&self, cost: u64) -> Result<()> {
        match self.0.rules.iter().find(|rule| cost > rule.scale.burst()) {
            None => Ok(()),
            Some(rule) => Err(self.cost_above_burst(cost, rule)),
        }
    }

    #[cold]
    fn cost_above_burst(&self, cost: u64, rule: &ActiveRule) -> Error {
        let message = format!(
            "cost {cost} can never pass: the burst of rule {:?} in domain {:?} is {}; \
             use a lower cost, `partial` or `allow_debt`, or raise the burst",
            rule.name,
            self.0.name,
            rule.burst()
        );
        Error::new(ErrorKind::Cost, message)
    }

    /// Returns an error if the throttle is closed. Starts the exchange if the throttle is in a
    /// cluster.
    #[inline]
    fn ready(&self) -> Result<()> {
        self.check_open()?;
        if let Some(node) = &self.0.node {
            node.start();
        }
        Ok(())
    }

    /// Returns an error if the throttle is closed.
    #[doc(hidden)]
    #[inline]
    pub fn check_open(&self) -> Result<()> {
        // Relaxed: a call that races with `close` may happen before or after it.
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

    /// Gives units back to a bucket, and returns its new TAT.
    pub(crate) fn refund(&self, scale: &Scale, key: Key, now: u64, units: u64) -> Tat {
        self.update(scale, key, now, |tat| {
            let next = scale.refund(tat, units);
            BucketUpdate { tat: next, hits: scale.hits(tat, next, key.fingerprint), answer: next }
        })
    }

    /// Applies one atomic step to a bucket. If the table has no room, the step is applied to a full
    /// bucket and not stored: the throttle fails open.
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
