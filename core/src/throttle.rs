//! The throttle, which an application holds and calls.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::builder::{Builder, rebuild};
use crate::cluster::node::ClusterNode;
use crate::config::Config;
use crate::domain::{Domain, Host};
use crate::error::{Error, ErrorKind, Result};
use crate::limit::rate::quoted;
use crate::stats::Stats;
use crate::top::{TopBucket, top};

/// The maximum number of domains that an error message lists.
const SHOWN: usize = 20;

/// A rate limiter with one or more [domains](Domain).
///
/// A throttle dereferences to its default domain, named `default`, so all calls of [`Domain`] work
/// on the throttle itself. Clones share all state. A throttle can be used from any thread, and from
/// children that are forked after it was built.
///
/// ```
/// use dthrottle::{Rule, Throttle};
///
/// let throttle = Throttle::builder().rule(Rule::per_second(100).burst(200)).build()?;
/// if throttle.allow("203.0.113.7")? {
///     // Serve the request.
/// }
/// # Ok::<(), dthrottle::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Throttle {
    default: Domain,
    domains: Arc<[Domain]>,
}

impl Throttle {
    pub(crate) fn of(domains: Arc<[Domain]>) -> Throttle {
        Throttle { default: domains[0].clone(), domains }
    }
}

impl Throttle {
    /// Starts to build a throttle.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns a handle to a domain. Keep the handle, because each call searches the list of
    /// domains.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Domain`] if the throttle has no domain of this name, [`ErrorKind::Closed`]
    /// after [`Throttle::close`].
    pub fn domain(&self, name: &str) -> Result<Domain> {
        self.default.check_open()?;
        self.domains.iter().find(|domain| domain.name() == name).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.domains.iter().map(Domain::name).take(SHOWN).collect();
            let more = if self.domains.len() > SHOWN { ", ..." } else { "" };
            let message = format!(
                "unknown domain {}; known domains are {}{more}",
                quoted(name),
                known.join(", ")
            );
            Error::new(ErrorKind::Domain, message)
        })
    }

    /// All domains. The default domain comes first.
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// Returns the statistics of the throttle. Reads the whole table to count the buckets in use.
    ///
    /// ```
    /// use dthrottle::{ManualClock, Rule, Throttle};
    ///
    /// let rule = Rule::per_second(1);
    /// let throttle = Throttle::builder().rule(rule).clock(ManualClock::new()).build()?;
    /// (0..3).try_for_each(|_| throttle.allow("alice").map(drop))?;
    /// let stats = throttle.stats();
    /// assert_eq!((stats.allowed, stats.refused, stats.buckets), (1, 2, 1));
    /// # Ok::<(), dthrottle::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        let host = self.host();
        let table = &host.table;
        Stats {
            evicted: table.evicted.get(),
            buckets: table.live(host.now()) as u64,
            unreported: table.unreported.get(),
            ..host.counters.stats()
        }
    }

    /// Numbers of checks allowed and refused, as in [`Throttle::stats`], without reading the table.
    pub fn decisions(&self) -> (u64, u64) {
        let stats = self.host().counters.stats();
        (stats.allowed, stats.refused)
    }

    /// The name of the table, or `None` if it is not shared by name.
    pub fn table_name(&self) -> Option<&str> {
        self.host().named.as_ref()?.name()
    }

    /// Settings that could not be followed, as messages for the log, for example a named table that
    /// could not be created. The throttle works all the same.
    pub fn warnings(&self) -> &[String] {
        &self.host().warnings
    }

    /// Lists the buckets that used the largest share of their burst, in descending order. Reads the
    /// whole table.
    ///
    /// ```
    /// use dthrottle::{CheckOptions, ManualClock, Rule, Throttle};
    ///
    /// let rule = Rule::per_hour(10);
    /// let throttle = Throttle::builder().rule(rule).clock(ManualClock::new()).build()?;
    /// throttle.check_with("alice", CheckOptions::cost(8))?;
    /// throttle.check("bob")?;
    /// let top = throttle.top(1);
    /// assert_eq!((top[0].limit, top[0].balance), (10, 2));
    /// # Ok::<(), dthrottle::Error>(())
    /// ```
    pub fn top(&self, count: usize) -> Vec<TopBucket> {
        top(self.host(), &self.domains, count)
    }

    /// Starts the exchange with the cluster in this process. Otherwise the first check starts it.
    /// Does nothing if the throttle is not in a cluster.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] after [`Throttle::close`].
    pub fn start(&self) -> Result<()> {
        self.default.check_open()?;
        if let Some(node) = self.node() {
            node.start();
        }
        Ok(())
    }

    /// Permanently stops the exchange in this process, without waiting for its thread. Another
    /// process of the table takes over the exchange. Checks continue to work. Use it in a process
    /// that is about to end.
    pub fn stop(&self) {
        if let Some(node) = self.node() {
            node.disable();
        }
    }

    /// Returns a throttle with the rules of another configuration on the same table, with the same
    /// counters. No bucket is lost, whatever kind of table it is. The settings of the table in
    /// `config` are ignored. In a cluster the exchange is restarted.
    ///
    /// This throttle, its clones and its domains keep the old rules. Drop them when they are no
    /// longer needed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the configuration is invalid, if it adds or removes the cluster, or
    /// if it changes the cluster's secret. [`ErrorKind::Closed`] after [`Throttle::close`].
    ///
    /// ```
    /// use dthrottle::{Config, ManualClock, Rule, Throttle};
    ///
    /// let rule = Rule::per_hour(10);
    /// let throttle = Throttle::builder().rule(rule).clock(ManualClock::new()).build()?;
    /// assert_eq!(throttle.check("alice")?.remaining, 9);
    /// let mut config = Config::default();
    /// config.add_rule(Config::DEFAULT, Rule::per_hour(5));
    /// let throttle = throttle.reload(config)?;
    /// assert_eq!(throttle.peek("alice")?.remaining, 5);
    /// # Ok::<(), dthrottle::Error>(())
    /// ```
    pub fn reload(&self, config: Config) -> Result<Throttle> {
        self.default.check_open()?;
        let throttle = rebuild(self, config)?;
        if let Some(node) = self.node() {
            node.stop();
        }
        throttle.start()?;
        Ok(throttle)
    }

    /// Closes the throttle, its clones and its domains. Later calls return errors of the kind
    /// [`ErrorKind::Closed`].
    pub fn close(&self) {
        // Relaxed: no other data is published with it.
        self.host().closed.store(true, Ordering::Relaxed);
        if let Some(node) = self.node() {
            node.stop();
        }
    }

    pub(crate) fn node(&self) -> Option<&Arc<ClusterNode>> {
        self.default.0.node.as_ref()
    }

    pub(crate) fn host(&self) -> &Host {
        &self.default.0.host
    }
}

impl Deref for Throttle {
    type Target = Domain;

    fn deref(&self) -> &Domain {
        &self.default
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ManualClock, Rule, TableConfig};

    /// A table with few lines, and many tags that are not full.
    #[test]
    fn a_full_table_evicts_buckets_and_counts_them() {
        let builder = Throttle::builder().rule(Rule::per_second(1)).clock(ManualClock::new());
        let throttle = builder.table(TableConfig::private().tags(1)).build().unwrap();
        assert!((0..1000_u32).all(|tag| throttle.allow(tag.to_le_bytes()).unwrap()));
        let stats = throttle.stats();
        assert_eq!((stats.buckets, stats.evicted, stats.failed_open), (8, 992, 0));
    }

    /// The figures of Smockron's master: with a burst of ten, the eleventh request is one interval
    /// too early.
    #[test]
    fn charges_beyond_the_burst_become_debt() {
        let clock = ManualClock::new();
        let rules = [Rule::per_second(1).burst(10), Rule::per_minute(60).burst(11)];
        let builder = Throttle::builder().domain("two", rules).clock(clock.clone());
        let two = builder.build().unwrap().domain("two").unwrap();
        let debts: Vec<u64> =
            (0..13).map(|_| two.charge("a", 1).unwrap().as_millis() as u64).collect();
        assert_eq!(debts, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1000, 2000, 3000]);
        clock.advance(std::time::Duration::from_millis(3500));
        assert_eq!(two.charge("a", 1).unwrap().as_millis(), 500);
        assert_eq!(two.charge("b", 10).unwrap().as_millis(), 0);
    }

    #[test]
    fn charged_units_are_reported_to_peers_once() {
        for (burst, units, expected) in
            [(10, 3, 3), (10, 25, 25), (10_000_000, 1_530_000, 1_530_000)]
        {
            let clock = ManualClock::new();
            let rule = Rule::per_second(1).burst(burst);
            let table = TableConfig::private().clustered().tags(1);
            let builder = Throttle::builder().rule(rule).table(table).clock(clock.clone());
            let throttle = builder.build().unwrap();
            let exchange = throttle.exchange();
            for _ in 0..2 {
                clock.advance(std::time::Duration::from_secs(30_000_000));
                let now = exchange.now();
                exchange.keep_alive(now);
                throttle.charge("a", units).unwrap();
                let mut sum = 0;
                exchange.drain(now, false, |_, _| true, |entry| sum += entry.hits * entry.quantum);
                assert!(sum.abs_diff(expected) < 153, "{sum} of {expected} units reported");
            }
        }
    }

    #[test]
    fn reload_keeps_buckets_and_counters() {
        let clock = ManualClock::new();
        let builder = Throttle::builder().rule(Rule::per_second(1).burst(10)).clock(clock);
        let old = builder.table(TableConfig::private()).build().unwrap();
        for _ in 0..4 {
            old.check("a").unwrap();
        }
        let config = Config::from_toml("rate = '1/s'\nburst = 5\n[domains.more]\nrate = 1\n");
        let new = old.reload(config.unwrap()).unwrap();
        // Six of ten units are left, which is cut to the new burst of five.
        assert_eq!(new.peek("a").unwrap().remaining, 5);
        assert!(new.domain("more").is_ok());
        assert_eq!(new.stats().allowed, 4);
        let clustered = Config::from_toml("rate = 1\n[cluster]\nname = 'web'\n").unwrap();
        assert_eq!(old.reload(clustered).unwrap_err().field(), Some("cluster"));
    }

    #[test]
    fn a_reload_without_rules_is_an_error() {
        let builder = Throttle::builder().rule(Rule::per_second(1)).clock(ManualClock::new());
        let old = builder.build().unwrap();
        assert!(old.allow("a").unwrap());
        for text in ["", "dry_run = true", "[domains.api]\ndry_run = true"] {
            let error = old.reload(Config::from_toml(text).unwrap()).unwrap_err();
            assert_eq!(error.field(), Some("rate"), "{text}: {error}");
            assert!(!old.allow("a").unwrap(), "the old rules stay");
        }
        let new = old.reload(Config::from_toml("rate = 'unlimited'").unwrap()).unwrap();
        assert!(new.allow("a").unwrap());
    }

    /// Decades after the first reading of the clock, a bucket has no more ticks. Checks that pass
    /// are then counted as failed open.
    #[test]
    fn checks_after_the_last_tick_are_counted_as_failed_open() {
        let clock = ManualClock::new();
        let rules = [Rule::per_second(4), Rule::per_second(1).burst(2)];
        let builder = Throttle::builder().rule(rules[0].clone()).domain("two", rules);
        let throttle = builder.clock(clock.clone()).build().unwrap();
        let two = throttle.domain("two").unwrap();
        assert_eq!((0..10).filter(|_| throttle.allow("a").unwrap()).count(), 4);
        clock.set(std::time::Duration::from_secs(1_760_000_000)).unwrap();
        assert!((0..10).all(|_| throttle.allow("a").unwrap()));
        assert_eq!(throttle.stats().failed_open, 10);
        assert!(two.check("a").unwrap().allowed);
        assert!(two.check_with("a", crate::CheckOptions::cost(0)).unwrap().allowed);
        assert_eq!(throttle.stats().failed_open, 11, "a cost of 0 takes nothing");
    }

    #[test]
    fn the_default_table_has_room_for_200_000_tags() {
        let builder = Throttle::builder().rule(Rule::per_second(1)).clock(ManualClock::new());
        let throttle = builder.build().unwrap();
        assert!((0..200_000_u32).all(|tag| throttle.allow(tag.to_le_bytes()).unwrap()));
        let stats = throttle.stats();
        assert_eq!((stats.buckets, stats.failed_open), (200_000, 0));
        assert_eq!(throttle.decisions(), (200_000, 0));
    }
}
