//! Builds a throttle from rules, clock, table and cluster.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::Throttle;
#[cfg(all(feature = "busy", feature = "cluster", target_os = "linux"))]
use crate::busy;
use crate::clock::{Clock, TableClock};
use crate::cluster::node::ClusterNode;
use crate::config::{Config, DomainConfig, TableConfig};
use crate::domain::{ActiveRule, Domain, Host, Inner};
use crate::error::{Error, Result};
use crate::limit::pacing::Pacing;
use crate::limit::rule::Rule;
use crate::stats::Counters;
use crate::table::MAX_TABLE_RULES;
use crate::table::fingerprint::{Fingerprints, rule_id};
use crate::table::open::{Opened, open};
use crate::table::rule_users::RuleHold;

/// Builds a [`Throttle`].
///
/// A throttle needs at least one rule, or [`Rule::unlimited`].
///
/// ```
/// use dthrottle::{Rule, TableConfig, Throttle};
///
/// let throttle = Throttle::builder()
///     .rule(Rule::per_second(100).burst(200))
///     .domain("login", [Rule::per_minute(5)])
///     .table(TableConfig::private().tags(10_000))
///     .build()?;
/// # Ok::<(), dthrottle::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Builder {
    pub(crate) config: Config,
    clock: Option<Clock>,
    key: Option<[u64; 2]>,
}

impl Builder {
    /// Adds a rule to the default domain.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Builder {
        self.config.add_rule(Config::DEFAULT, rule);
        self
    }

    /// Adds rules to a domain. Without rules, the domain allows everything.
    #[must_use]
    pub fn domain(mut self, name: &str, rules: impl IntoIterator<Item = Rule>) -> Builder {
        let domain = self.config.domain_mut(name);
        rules.into_iter().for_each(|rule| domain.add(rule));
        domain.unlimited |= domain.rules.is_empty();
        self
    }

    /// Sets dry run for every domain that does not have its own setting. In dry run, refusals and
    /// delays are counted, but every check is allowed at once.
    #[must_use]
    pub fn dry_run(mut self, dry_run: bool) -> Builder {
        self.config.dry_run = dry_run;
        self
    }

    /// Sets the clock. The default is the system's clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> Builder {
        self.clock = Some(clock.into());
        self
    }

    /// Sets the key of the fingerprints. The default is a random key. For platforms that have no
    /// randomness, such as WebAssembly.
    #[must_use]
    pub fn fingerprint_key(mut self, key: [u64; 2]) -> Builder {
        self.key = Some(key);
        self
    }

    /// Sets the table that stores the buckets. By default it is shared with children that are
    /// forked later.
    #[must_use]
    pub fn table(mut self, table: TableConfig) -> Builder {
        self.config.set_table(table);
        self
    }

    /// Builds the throttle.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if a rule or another setting is invalid,
    /// with the field in [`Error::field`]. [`ErrorKind::File`](crate::ErrorKind::File) if a named
    /// table or a file with a secret cannot be used.
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) if the platform has no system clock and
    /// no clock was given.
    pub fn build(mut self) -> Result<Throttle> {
        self.config.prepare()?;
        let node = self.config.cluster.map(ClusterNode::new);
        let clock = self.clock.unwrap_or(Clock::System);
        clock.check()?;
        // All nodes of a cluster must compute the same fingerprint for a tag.
        let key = node.as_ref().map(ClusterNode::fingerprint_key).or(self.key);
        let opened = open(&self.config.table, &clock, key)?;
        let Opened { table, name, zero_ns, key, mut warnings, rule_users, earlier } = opened;
        warnings.extend(self.config.warnings);
        let counters = Counters::default();
        let closed = AtomicBool::new(false);
        let named = name.map(|name| self.config.table.with_name(name));
        #[cfg(all(feature = "busy", feature = "cluster", target_os = "linux"))]
        if let (Some(node), Some(table)) = (&node, &named) {
            warnings.extend(busy::join_cluster(node, table, key)?);
        }
        let host = Arc::new(Host {
            table,
            named,
            clock: TableClock::new(clock, zero_ns),
            key,
            counters,
            closed,
            warnings,
            rule_users,
            earlier,
            pacing: node.as_ref().filter(|node| node.is_paced()).map(|_| Pacing::new()),
        });
        on_table(&host, &self.config.domains, self.config.dry_run, node)
    }
}

/// Builds a throttle with other rules on the table of an existing one.
pub(crate) fn rebuild(old: &Throttle, mut config: Config) -> Result<Throttle> {
    let host = &old.0.host;
    config.prepare()?;
    let node = config.cluster.map(ClusterNode::new);
    if node.is_some() != old.0.node.is_some() {
        let message = "cannot be added or removed while the throttle is open; open a new one";
        return Err(Error::config("cluster", message));
    }
    if node.as_ref().is_some_and(|node| node.fingerprint_key() != host.key) {
        let message = "cannot change while the throttle is open; open a new one";
        return Err(Error::config("cluster.secret", message));
    }
    #[cfg(all(feature = "busy", feature = "cluster", target_os = "linux"))]
    if let (Some(node), Some(table)) = (&node, &host.named) {
        busy::join_cluster(node, table, host.key)?;
    }
    on_table(host, &config.domains, config.dry_run, node)
}

/// Builds a throttle with these domains on an open table.
fn on_table(
    host: &Arc<Host>,
    domains: &[DomainConfig],
    dry_run: bool,
    node: Option<ClusterNode>,
) -> Result<Throttle> {
    let rules = domains.iter().map(|domain| active_rules(domain, host, node.as_ref()));
    let mut rules: Vec<_> = rules.collect::<Result<_>>()?;
    let hold = Arc::new(hold_rules(host, rules.iter_mut().flatten())?);
    let node = node.map(Arc::new);
    let domains = domains.iter().zip(rules).map(|(domain, rules)| {
        let dry_run = domain.dry_run.unwrap_or(dry_run);
        let (host, hold, node) = (Arc::clone(host), Arc::clone(&hold), node.clone());
        Domain(Arc::new(Inner { name: domain.name.clone(), dry_run, rules, hold, host, node }))
    });
    let throttle = Throttle::of(domains.collect());
    if let Some(node) = node {
        node.attach(&throttle);
    }
    Ok(throttle)
}

impl From<Config> for Builder {
    fn from(config: Config) -> Builder {
        Builder { config, ..Builder::default() }
    }
}

/// Holds all rules of a throttle and sets their indexes.
fn hold_rules<'a>(
    host: &Host,
    rules: impl Iterator<Item = &'a mut ActiveRule>,
) -> Result<RuleHold> {
    let mut rules: Vec<_> = rules.collect();
    let wanted: Vec<_> = rules.iter().map(|rule| (rule.id, rule.scale)).collect();
    let held = host.rule_users.hold(&host.table, || host.now(), &wanted)?;
    let (hold, indexes) = held.ok_or_else(|| {
        let why = match host.table.are_rules_pinned() {
            true => "and cannot be reused, because a process could not lock the table's file",
            false => "by live processes or by buckets that are not full",
        };
        let message = format!(
            "has no room for more rules: all {MAX_TABLE_RULES} are in use {why}; \
             use fewer rules or another table name"
        );
        Error::config("table", message)
    })?;
    rules.iter_mut().zip(indexes).for_each(|(rule, index)| rule.index = index);
    Ok(hold)
}

/// The rules of a domain, without their indexes.
fn active_rules(
    domain: &DomainConfig,
    host: &Host,
    node: Option<&ClusterNode>,
) -> Result<Vec<ActiveRule>> {
    let rules = domain.rules.iter().zip(domain.rule_names()).enumerate();
    rules
        .map(|(i, (rule, name))| {
            let scale = rule.scale().map_err(|fault| domain.fault(i, fault))?;
            let id = rule_id(&domain.name, &name);
            let fingerprints = Fingerprints::new(host.key, id);
            let charge_refused = rule.charge_refused;
            let (tolerance_ns, slack) = node.map_or((0, false), |node| node.tolerance(&scale));
            Ok(ActiveRule {
                name,
                scale,
                charge_refused,
                id,
                index: 0,
                tolerance_ns,
                slack,
                fingerprints,
            })
        })
        .collect()
}
