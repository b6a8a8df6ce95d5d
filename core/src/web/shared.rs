//! Shares one throttle per table and cluster among all middlewares and route limits of a process,
//! so that there is one exchange with the cluster and one set of rules.
//!
//! Domains cannot be added to an open throttle. Until the first request, each new middleware adds
//! its domains, and the throttle is opened anew, which is cheap because its exchange has not
//! started. A middleware that is created after the first request gets another throttle on the same
//! table.
//!
//! The locks here are held briefly, and in Python always together with the interpreter's lock, so
//! no fork can happen meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::warnings::{FAILED, TABLE, Warning};
use crate::builder::Builder;
use crate::clock::Clock;
use crate::config::{Config, DomainConfig, TableConfig, TableKind};
use crate::error::{ErrorKind, Result};
use crate::{Domain, Throttle};

/// The throttles that were created for middlewares of this process.
static REGISTRY: Mutex<Vec<Weak<State>>> = Mutex::new(Vec::new());

/// A throttle that several middlewares use. It is closed together with the last of them.
#[derive(Clone, Debug)]
pub struct SharedThrottle(Arc<State>);

#[derive(Debug)]
struct State {
    settings: ThrottleSettings,
    inner: Mutex<Inner>,
}

/// The settings of a throttle, except its domains.
#[derive(Clone, Debug)]
pub(super) struct ThrottleSettings {
    /// The domains in it are ignored.
    pub(super) config: Config,
    pub(super) clock: Option<Clock>,
    pub(super) key: Option<[u64; 2]>,
}

#[derive(Debug, Default)]
struct Inner {
    domains: Vec<DomainConfig>,
    throttle: Option<Throttle>,
    /// Whether a request was checked. From then on, no domain can be added.
    is_used: bool,
    warning: Option<Warning>,
}

/// The result of adding the domains of a middleware to a throttle.
pub(super) struct AddedDomains {
    pub(super) throttle: SharedThrottle,
    /// The name of the first domain, with a number if another domain has its name.
    pub(super) name: String,
    /// Whether another middleware has the same name with other rules.
    pub(super) collides: bool,
}

impl SharedThrottle {
    /// Creates a throttle that is not in the registry, because it has a private table or a clock of
    /// its own. Only its creator can share it.
    pub(super) fn unregistered(settings: ThrottleSettings) -> SharedThrottle {
        SharedThrottle(Arc::new(State { settings, inner: Mutex::default() }))
    }

    /// Adds domains to the throttle for this table and cluster, which is created if necessary.
    /// `is_named` tells that the user named the domain, so that its name must not change.
    pub(super) fn add_domains(
        settings: ThrottleSettings,
        domains: Vec<DomainConfig>,
        is_named: bool,
        within: Option<&SharedThrottle>,
    ) -> AddedDomains {
        let is_shared =
            settings.clock.is_none() && settings.config.table.kind != TableKind::Private;
        let mut registry = lock(&REGISTRY);
        registry.retain(|known| known.strong_count() > 0);
        let known: Vec<SharedThrottle> = match within {
            Some(throttle) => vec![throttle.clone()],
            None if is_shared => {
                let same = registry.iter().filter_map(Weak::upgrade).filter(|state| {
                    state.settings.config.table == settings.config.table
                        && state.settings.config.cluster == settings.config.cluster
                });
                same.map(SharedThrottle).collect()
            }
            None => Vec::new(),
        };
        let mut domains = domains;
        let collides = make_distinct(&mut domains, &known, is_named);
        let name = domains.first().map(|domain| domain.name.clone()).unwrap_or_default();
        // The latest first, because the earlier ones already serve requests.
        let accepting = known.into_iter().rev().find(|throttle| throttle.try_add(&domains));
        let throttle = accepting.unwrap_or_else(|| {
            let made = SharedThrottle::unregistered(settings);
            made.try_add(&domains);
            if is_shared {
                registry.push(Arc::downgrade(&made.0));
            }
            made
        });
        AddedDomains { throttle, name, collides }
    }

    /// Adds domains. Returns false if requests were already checked, or if a domain has the name of
    /// another domain with other rules.
    fn try_add(&self, domains: &[DomainConfig]) -> bool {
        let mut inner = lock(&self.0.inner);
        let is_new =
            |domain: &&DomainConfig| !inner.domains.iter().any(|known| is_same(known, domain));
        let new: Vec<DomainConfig> = domains.iter().filter(is_new).cloned().collect();
        let contradicts =
            new.iter().any(|domain| inner.domains.iter().any(|known| known.name == domain.name));
        if contradicts || (inner.is_used && !new.is_empty()) {
            return false;
        }
        if !new.is_empty() {
            inner.domains.extend(new);
            if let Some(old) = inner.throttle.take() {
                old.close();
            }
        }
        true
    }

    /// Opens the throttle before the first request.
    ///
    /// # Errors
    ///
    /// If the table cannot be opened.
    pub fn open(&self) -> Result<Throttle> {
        self.open_locked(&mut lock(&self.0.inner))
    }

    fn open_locked(&self, inner: &mut Inner) -> Result<Throttle> {
        if let Some(throttle) = &inner.throttle {
            return Ok(throttle.clone());
        }
        let config = self.0.config(&inner.domains);
        let throttle = self.0.build(config.clone()).or_else(|error| {
            let of_table = error.kind() == ErrorKind::File || error.field() == Some("table");
            if !config.table.default_name || !of_table {
                return Err(error);
            }
            // The user did not choose this table, so it must not keep the application from
            // starting.
            let mut config = config;
            let size = config.table.size.clone();
            config.set_table(TableConfig { size, ..TableConfig::anonymous() });
            let throttle = self.0.build(config)?;
            let message = format!("{error}; buckets are shared only with forked children");
            inner.warning = Some(Warning { code: TABLE, message });
            Ok(throttle)
        })?;
        if inner.warning.is_none() && !throttle.warnings().is_empty() {
            let message = throttle.warnings().join("; ");
            inner.warning = Some(Warning { code: TABLE, message });
        }
        inner.throttle = Some(throttle.clone());
        Ok(throttle)
    }

    /// Returns a domain for the first request. If the table cannot be opened, uses a private table,
    /// because it is too late to stop the application.
    pub(super) fn domain(&self, name: &str) -> Result<Domain> {
        let mut inner = lock(&self.0.inner);
        let throttle = match self.open_locked(&mut inner) {
            Ok(throttle) => throttle,
            Err(error) => {
                let mut config = self.0.config(&inner.domains);
                config.cluster = None;
                config.table = TableConfig::private();
                let throttle = self.0.build(config)?;
                let message =
                    format!("cannot open the table, so this process uses a private one: {error}");
                inner.warning = Some(Warning { code: FAILED, message });
                inner.throttle = Some(throttle.clone());
                throttle
            }
        };
        inner.is_used = true;
        throttle.domain(name)
    }

    /// See [`tables::changed_domain`](crate::tables::changed_domain).
    #[cfg(all(feature = "shared", target_os = "linux"))]
    pub fn changed_domain(&self) -> Option<String> {
        crate::tables::changed_domain(&self.0.config(&lock(&self.0.inner).domains))
    }

    /// Takes the warning from opening the throttle, if there is one.
    pub(super) fn take_warning(&self) -> Option<Warning> {
        lock(&self.0.inner).warning.take()
    }

    /// Returns the name of the table, which is known before the throttle is opened.
    pub fn table_name(&self) -> Option<String> {
        match &lock(&self.0.inner).throttle {
            Some(throttle) => throttle.table_name().map(Into::into),
            None => self.0.settings.config.table_name().map(Into::into),
        }
    }
}

impl State {
    fn config(&self, domains: &[DomainConfig]) -> Config {
        let mut config = self.settings.config.clone();
        config.domains = vec![Config::default().domains.remove(0)];
        for domain in domains {
            match domain.name == Config::DEFAULT {
                true => config.domains[0] = domain.clone(),
                false => config.domains.push(domain.clone()),
            }
        }
        config
    }

    fn build(&self, config: Config) -> Result<Throttle> {
        let mut builder = Builder::from(config);
        if let Some(clock) = &self.settings.clock {
            builder = builder.clock(clock.clone());
        }
        match self.settings.key {
            Some(key) => builder.fingerprint_key(key).build(),
            None => builder.build(),
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(throttle) = inner.throttle.take() {
            throttle.close();
        }
    }
}

/// Appends a number to the name of a domain that the user did not name, if another middleware uses
/// the name with other rules. Workers create their middlewares in the same order and get the same
/// names.
fn make_distinct(domains: &mut [DomainConfig], known: &[SharedThrottle], is_named: bool) -> bool {
    let is_taken = |domain: &DomainConfig| {
        known.iter().any(|throttle| {
            let inner = lock(&throttle.0.inner);
            inner.domains.iter().any(|other| other.name == domain.name && !is_same(other, domain))
        })
    };
    if is_named || domains.len() != 1 {
        return domains.iter().any(is_taken);
    }
    let name = domains[0].name.clone();
    for number in 2.. {
        if !is_taken(&domains[0]) {
            return number > 2;
        }
        domains[0].name = format!("{name} {number}");
    }
    unreachable!("there are fewer domains than numbers")
}

/// Whether two domains have the same name, rules and dry run, wherever they were configured.
fn is_same(a: &DomainConfig, b: &DomainConfig) -> bool {
    (&a.name, &a.rules, a.dry_run) == (&b.name, &b.rules, b.dry_run)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
