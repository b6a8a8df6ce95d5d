//! The throttle: what an application holds and asks, and how it is built.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::Clock;
use crate::config::{Config, DomainConfig, TableConfig};
use crate::domain::{ActiveRule, Domain, Host, Inner};
use crate::error::{Error, ErrorKind, Result};
use crate::exchange::Exchange;
use crate::fingerprint::{Fingerprints, rule_id};
use crate::open::{Opened, open};
use crate::rate::quoted;
use crate::rule::Rule;
use crate::stats::{Counters, Stats};
use crate::table::Table;
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
    /// Starts a throttle from parts.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A throttle from a configuration in TOML.
    #[cfg(feature = "os")]
    pub fn from_toml(text: &str) -> Result<Throttle> {
        Builder::from(Config::from_toml(text)?).build()
    }

    /// A throttle from a configuration file.
    #[cfg(feature = "os")]
    pub fn from_file(path: impl AsRef<std::path::Path>) -> Result<Throttle> {
        Builder::from(Config::from_file(path)?).build()
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
        host.counters.stats(host.table.evicted.get(), host.table.live(host.now()))
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

    /// The table for an exchanger.
    #[doc(hidden)]
    pub fn exchange(&self) -> Exchange {
        let rules = self.domains.iter().flat_map(|domain| domain.0.rules.iter().cloned());
        Exchange::new(Arc::clone(&self.default.0.host), rules.collect())
    }

    /// Bytes that the table takes, and slots in it.
    #[doc(hidden)]
    pub fn table_size(&self) -> (usize, usize) {
        (self.host().table.bytes(), self.host().table.slots())
    }

    /// Ends the throttle: every later check, refund, reset, debit or look-up of a domain, on any
    /// clone or domain, is a `closed` error.
    pub fn close(&self) {
        // Relaxed: nothing else is published with it.
        self.host().closed.store(true, Ordering::Relaxed);
    }

    fn host(&self) -> &Host {
        &self.default.0.host
    }
}

impl Deref for Throttle {
    type Target = Domain;

    fn deref(&self) -> &Domain {
        &self.default
    }
}

/// Builds a [`Throttle`].
#[derive(Clone, Debug, Default)]
pub struct Builder {
    config: Config,
    clock: Option<Clock>,
    key: Option<[u64; 2]>,
}

impl Builder {
    /// Adds a rule to the default domain.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Builder {
        self.config.domain_mut(Config::DEFAULT).rules.push(rule);
        self
    }

    /// Adds rules to a domain.
    #[must_use]
    pub fn domain(mut self, name: &str, rules: impl IntoIterator<Item = Rule>) -> Builder {
        self.config.domain_mut(name).rules.extend(rules);
        self
    }

    /// Whether refusals are only counted, in every domain that does not say otherwise.
    #[must_use]
    pub fn dry_run(mut self, dry_run: bool) -> Builder {
        self.config.dry_run = dry_run;
        self
    }

    /// The clock; the system's by default.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> Builder {
        self.clock = Some(clock.into());
        self
    }

    /// The key of the fingerprints; random by default. For hosts whose randomness this crate
    /// cannot reach: without the feature `os` there is no other.
    #[must_use]
    pub fn fingerprint_key(mut self, key: [u64; 2]) -> Builder {
        self.key = Some(key);
        self
    }

    /// Where the buckets live; shared with forked children by default.
    #[must_use]
    pub fn table(mut self, table: TableConfig) -> Builder {
        self.config.table = table;
        self
    }

    /// Builds the throttle, or says what is wrong with its rules.
    pub fn build(self) -> Result<Throttle> {
        self.config.check()?;
        let clock = self.clock.map_or_else(default_clock, Ok)?;
        let Opened { table, zero_ns, key, warnings } = open(&self.config.table, &clock, self.key)?;
        let domains = self.config.domains.iter().map(|domain| {
            let dry_run = domain.dry_run.unwrap_or(self.config.dry_run);
            Ok((domain.name.clone(), dry_run, active_rules(domain, &table, key)?))
        });
        let domains: Vec<_> = domains.collect::<Result<_>>()?;
        let counters = Counters::default();
        let closed = AtomicBool::new(false);
        let host = Arc::new(Host { table, clock, zero_ns, counters, closed, warnings });
        let domains: Arc<[Domain]> = domains
            .into_iter()
            .map(|(name, dry_run, rules)| {
                Domain(Arc::new(Inner { name, dry_run, rules, host: Arc::clone(&host) }))
            })
            .collect();
        Ok(Throttle { default: domains[0].clone(), domains })
    }
}

impl From<Config> for Builder {
    fn from(config: Config) -> Builder {
        Builder { config, ..Builder::default() }
    }
}

fn active_rules(domain: &DomainConfig, table: &Table, key: [u64; 2]) -> Result<Vec<ActiveRule>> {
    let rules = domain.rules.iter().zip(domain.rule_names()).enumerate();
    rules
        .map(|(i, (rule, name))| {
            let scale = rule.scale().map_err(|fault| domain.fault(i, fault))?;
            let id = rule_id(&domain.name, &name);
            let index = table.rule_index(id, &scale).ok_or_else(|| {
                let message = "the table has seen too many rules, and no more fit; \
                               use a table of another name";
                Error::config("table", message)
            })?;
            let fingerprints = Fingerprints::new(key, id);
            let charge_refused = rule.charge_refused;
            Ok(ActiveRule { name, scale, charge_refused, index, fingerprints })
        })
        .collect()
}

#[cfg(feature = "os")]
fn default_clock() -> Result<Clock> {
    Ok(Clock::System)
}

#[cfg(not(feature = "os"))]
fn default_clock() -> Result<Clock> {
    Err(Error::new(ErrorKind::Argument, "no clock: give one, this build has no system clock"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;

    /// A few lines, and many tags in debt: somebody has to go, and it is counted.
    #[test]
    fn a_full_table_forgets_and_counts_it() {
        let builder = Throttle::builder().rule(Rule::per_second(1)).clock(ManualClock::new());
        let throttle = builder.table(TableConfig::private().tags(1)).build().unwrap();
        assert!((0..1000_u32).all(|tag| throttle.allow(tag.to_le_bytes()).unwrap()));
        let stats = throttle.stats();
        assert_eq!((stats.buckets, stats.evicted, stats.failed_open), (8, 992, 0));
    }

    #[test]
    fn there_is_room_for_many() {
        let builder = Throttle::builder().rule(Rule::per_second(1)).clock(ManualClock::new());
        let throttle = builder.build().unwrap();
        assert!((0..200_000_u32).all(|tag| throttle.allow(tag.to_le_bytes()).unwrap()));
        let stats = throttle.stats();
        assert_eq!((stats.buckets, stats.failed_open), (200_000, 0));
    }
}
