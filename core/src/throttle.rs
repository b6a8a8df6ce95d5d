//! The throttle: what an application holds and asks.

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

/// How many domains are listed when one is not found.
const SHOWN: usize = 20;

/// Holds every tag to the rules of its domains.
///
/// The throttle itself stands for the domain named `default`: it has all the calls of [`Domain`].
/// Clones are the same throttle.
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
    /// Starts a throttle from parts.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A handle to a domain. Resolve it once and keep it.
    pub fn domain(&self, name: &str) -> Result<Domain> {
        self.default.check_open()?;
        self.domains.iter().find(|domain| domain.name() == name).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.domains.iter().map(Domain::name).take(SHOWN).collect();
            let more = if self.domains.len() > SHOWN { ", ..." } else { "" };
            let message =
                format!("no domain {}; there are: {}{more}", quoted(name), known.join(", "));
            Error::new(ErrorKind::Domain, message)
        })
    }

    /// All domains, the default one first.
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// What the throttle counted so far.
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

    /// Checks allowed and refused so far, as in [`Throttle::stats`], without a look at the table.
    pub fn decisions(&self) -> (u64, u64) {
        let stats = self.host().counters.stats();
        (stats.allowed, stats.refused)
    }

    /// The name of the table, if it is shared by one.
    pub fn table_name(&self) -> Option<&str> {
        self.host().named.as_ref()?.name()
    }

    /// What is not as it was asked for, such as a named table that could not be shared by name.
    pub fn warnings(&self) -> &[String] {
        &self.host().warnings
    }

    /// The buckets with the largest share of their burst used, most used first. Looks at the whole
    /// table.
    pub fn top(&self, count: usize) -> Vec<TopBucket> {
        top(self.host(), &self.domains, count)
    }

    /// Starts the exchange with the cluster in this process, unless it has started: otherwise the
    /// first check does. Without a cluster there is nothing to start.
    pub fn start(&self) -> Result<()> {
        self.default.check_open()?;
        if let Some(node) = self.node() {
            node.start();
        }
        Ok(())
    }

    /// Ends the exchange in this process for good, and waits for nothing: another process of the
    /// table goes on with it. Checks go on as before. For processes that only finish what they
    /// have begun.
    pub fn stop(&self) {
        if let Some(node) = self.node() {
            node.disable();
        }
    }

    /// The same table and counters under the rules of another configuration: no bucket is lost,
    /// whatever kind of table it is, and what the configuration says about the table is left out of
    /// account. In a cluster the exchange starts anew. This throttle, its clones and its domains go
    /// on with the old rules, and are meant to be dropped.
    pub fn reload(&self, config: Config) -> Result<Throttle> {
        self.default.check_open()?;
        let throttle = rebuild(self, config)?;
        if let Some(node) = self.node() {
            node.stop();
        }
        throttle.start()?;
        Ok(throttle)
    }

    /// Ends the throttle: every later check, refund, reset, charge or look-up of a domain, on any
    /// clone or domain, is a `closed` error.
    pub fn close(&self) {
        // Relaxed: nothing else is published with it.
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

    /// A few lines, and many tags in debt: somebody has to go, and it is counted.
    #[test]
    fn a_full_table_forgets_and_counts_it() {
        let builder = Throttle::builder().rule(Rule::per_second(1)).clock(ManualClock::new());
        let throttle = builder.table(TableConfig::private().tags(1)).build().unwrap();
        assert!((0..1000_u32).all(|tag| throttle.allow(tag.to_le_bytes()).unwrap()));
        let stats = throttle.stats();
        assert_eq!((stats.buckets, stats.evicted, stats.failed_open), (8, 992, 0));
    }

    /// As Smockron's master counts: with a burst of ten the eleventh is one interval too early.
    #[test]
    fn what_is_charged_becomes_debt() {
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

    /// However long the bucket was full before, and whatever a hit is worth.
    #[test]
    fn peers_hear_of_what_is_charged_and_no_more() {
        for (burst, units, told) in [(10, 3, 3), (10, 25, 25), (10_000_000, 1_530_000, 1_530_000)] {
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
                assert!(sum.abs_diff(told) < 153, "{sum} of {told}");
            }
        }
    }

    #[test]
    fn other_rules_on_the_same_table() {
        let clock = ManualClock::new();
        let builder = Throttle::builder().rule(Rule::per_second(1).burst(10)).clock(clock);
        let old = builder.table(TableConfig::private()).build().unwrap();
        for _ in 0..4 {
            old.check("a").unwrap();
        }
        let config = Config::from_toml("rate = '1/s'\nburst = 5\n[domains.more]\nrate = 1\n");
        let new = old.reload(config.unwrap()).unwrap();
        // Of ten four were used: six are left, and five fit.
        assert_eq!(new.peek("a").unwrap().remaining, 5);
        assert!(new.domain("more").is_ok());
        assert_eq!(new.stats().allowed, 4);
        let clustered = Config::from_toml("rate = 1\n[cluster]\nname = 'web'\n").unwrap();
        assert_eq!(old.reload(clustered).unwrap_err().field(), Some("cluster"));
    }

    #[test]
    fn a_reload_that_loses_every_rule_is_an_error() {
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

    /// Decades after the first reading a bucket has no more ticks: what passes is counted.
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
    fn there_is_room_for_many() {
        let builder = Throttle::builder().rule(Rule::per_second(1)).clock(ManualClock::new());
        let throttle = builder.build().unwrap();
        assert!((0..200_000_u32).all(|tag| throttle.allow(tag.to_le_bytes()).unwrap()));
        let stats = throttle.stats();
        assert_eq!((stats.buckets, stats.failed_open), (200_000, 0));
        assert_eq!(throttle.decisions(), (200_000, 0));
    }
}
