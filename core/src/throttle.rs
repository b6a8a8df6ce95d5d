//! The throttle: what an application holds and asks, and how it is built.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::Clock;
use crate::config::{Config, DomainConfig};
use crate::domain::{ActiveRule, Domain, Host, Inner};
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::{Fingerprints, rule_id};
use crate::rate::quoted;
use crate::rule::Rule;
use crate::stats::{Counters, Stats};
use crate::table::Table;

/// How many buckets the table has room for.
const ROOM: usize = 1 << 20;

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
        host.counters.stats(host.table.live(host.clock.now_ns()))
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
#[derive(Clone, Debug)]
pub struct Builder {
    config: Config,
    clock: Option<Clock>,
    key: Option<[u64; 2]>,
    room: usize,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder { config: Config::default(), clock: None, key: None, room: ROOM }
    }
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

    /// Builds the throttle, or says what is wrong with its rules.
    pub fn build(self) -> Result<Throttle> {
        self.config.check()?;
        let key = self.key.unwrap_or_else(default_key);
        let clock = self.clock.map_or_else(default_clock, Ok)?;
        let mut first = 0;
        let mut domains = Vec::new();
        for domain in &self.config.domains {
            let rules = active_rules(domain, first, key)?;
            first += rules.len();
            domains.push((domain, rules));
        }
        let scales = domains.iter().flat_map(|(_, rules)| rules).map(|rule| rule.scale).collect();
        let host = Arc::new(Host {
            table: Table::new(scales, self.room),
            clock,
            counters: Counters::default(),
            closed: AtomicBool::new(false),
        });
        let domains: Arc<[Domain]> = domains
            .into_iter()
            .map(|(domain, rules)| {
                Domain(Arc::new(Inner {
                    name: domain.name.clone(),
                    dry_run: domain.dry_run.unwrap_or(self.config.dry_run),
                    rules,
                    host: Arc::clone(&host),
                }))
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

fn active_rules(domain: &DomainConfig, first: usize, key: [u64; 2]) -> Result<Vec<ActiveRule>> {
    let rules = domain.rules.iter().zip(domain.rule_names()).enumerate();
    rules
        .map(|(i, (rule, name))| {
            Ok(ActiveRule {
                scale: rule.scale().map_err(|fault| domain.fault(i, fault))?,
                charge_refused: rule.charge_refused,
                index: (first + i) as u16,
                fingerprints: Fingerprints::new(key, rule_id(&domain.name, &name)),
                name,
            })
        })
        .collect()
}

#[cfg(feature = "os")]
fn default_key() -> [u64; 2] {
    crate::os::random::key()
}

#[cfg(not(feature = "os"))]
fn default_key() -> [u64; 2] {
    [0; 2]
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

    #[test]
    fn a_full_table_fails_open_and_counts_it() {
        let builder = Throttle::builder().rule(Rule::per_second(1)).clock(ManualClock::new());
        let throttle = Builder { room: 1, ..builder }.build().unwrap();
        let admitted = |tag: u32| throttle.allow(tag.to_le_bytes()).unwrap();
        let fits = (0..1000).filter(|tag| admitted(*tag) && !admitted(*tag)).count();
        assert!((32..=64).contains(&fits), "a bucket for most of the 64 shards, not {fits}");
        let stats = throttle.stats();
        assert_eq!(stats.buckets, fits as u64);
        assert_eq!(stats.failed_open, 2 * (1000 - fits as u64));
        assert_eq!(stats.allowed, 2000 - fits as u64);
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
