//! One throttle per table and cluster in a process, however many middlewares and route limits use
//! it: one exchange with the cluster, and one set of rules.
//!
//! A throttle cannot get domains after it was made. Until the first request, each new middleware adds
//! its domains, and the throttle is made again, which is cheap because its exchange has not started.
//! A middleware that is made after the first request gets another throttle on the same table.
//!
//! The locks here are held for moments, and in Python always together with the interpreter's lock:
//! no fork can happen meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::warnings::{FAILED, TABLE, Warning};
use crate::builder::Builder;
use crate::clock::Clock;
use crate::config::{Config, DomainConfig, TableConfig, TableKind};
use crate::error::{ErrorKind, Result};
use crate::{Domain, Throttle};

/// The throttles that middleware made in this process.
static REGISTRY: Mutex<Vec<Weak<State>>> = Mutex::new(Vec::new());

/// A throttle that several middlewares use. It ends with the last of them.
#[derive(Clone, Debug)]
pub struct SharedThrottle(Arc<State>);

#[derive(Debug)]
struct State {
    origin: ThrottleSettings,
    inner: Mutex<Inner>,
}

/// All but the domains.
#[derive(Clone, Debug)]
pub(super) struct ThrottleSettings {
    /// Its domains are left out of account.
    pub(super) config: Config,
    pub(super) clock: Option<Clock>,
    pub(super) key: Option<[u64; 2]>,
}

#[derive(Debug, Default)]
struct Inner {
    domains: Vec<DomainConfig>,
    throttle: Option<Throttle>,
    /// Whether a request was checked: from then on no domain can be added.
    is_used: bool,
    warning: Option<Warning>,
}

/// The result of adding the domains of a middleware to a throttle.
pub(super) struct AddedDomains {
    pub(super) throttle: SharedThrottle,
    /// The name of the first of the domains, with a number if the name was taken.
    pub(super) name: String,
    /// Whether another middleware has the same name with other rules.
    pub(super) collides: bool,
}

impl SharedThrottle {
    /// A throttle that is not in the registry, so that only its creator can share it: on a private
    /// table, or with its own clock.
    pub(super) fn unregistered(origin: ThrottleSettings) -> SharedThrottle {
        SharedThrottle(Arc::new(State { origin, inner: Mutex::default() }))
    }

    /// The throttle for this table and cluster, with these domains besides those that it has.
    /// `is_named`: the user named the domain, so that it keeps its name.
    pub(super) fn add_domains(
        origin: ThrottleSettings,
        domains: Vec<DomainConfig>,
        is_named: bool,
        within: Option<&SharedThrottle>,
    ) -> AddedDomains {
        let is_shared = origin.clock.is_none() && origin.config.table.kind != TableKind::Private;
        let mut registry = lock(&REGISTRY);
        registry.retain(|known| known.strong_count() > 0);
        let known: Vec<SharedThrottle> = match within {
            Some(throttle) => vec![throttle.clone()],
            None if is_shared => {
                let same = registry.iter().filter_map(Weak::upgrade).filter(|state| {
                    state.origin.config.table == origin.config.table
                        && state.origin.config.cluster == origin.config.cluster
                });
                same.map(SharedThrottle).collect()
            }
            None => Vec::new(),
        };
        let mut domains = domains;
        let collides = make_distinct(&mut domains, &known, is_named);
        let name = domains.first().map(|domain| domain.name.clone()).unwrap_or_default();
        // The latest first: earlier ones are in use already.
        let accepting = known.into_iter().rev().find(|throttle| throttle.try_add(&domains));
        let throttle = accepting.unwrap_or_else(|| {
            let made = SharedThrottle::unregistered(origin);
            made.try_add(&domains);
            if is_shared {
                registry.push(Arc::downgrade(&made.0));
            }
            made
        });
        AddedDomains { throttle, name, collides }
    }

    /// Adds domains, unless it is too late or they contradict those that are there.
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

    /// Opens the throttle now, so that an unusable table is an error at once.
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
            // The user did not choose this table: it must not keep the application from starting.
            let mut config = config;
            let size = config.table.size.clone();
            config.set_table(TableConfig { size, ..TableConfig::anonymous() });
            let throttle = self.0.build(config)?;
            let message = format!("{error}; counts are shared only with forked children");
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

    /// A domain for the first request. It is too late to stop the start by then: if the table
    /// cannot be opened, this process counts alone.
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
                    format!("cannot open the table, so this process counts alone: {error}");
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

    /// The name of its table; known before it is opened.
    pub fn table_name(&self) -> Option<String> {
        match &lock(&self.0.inner).throttle {
            Some(throttle) => throttle.table_name().map(Into::into),
            None => self.0.origin.config.table_name().map(Into::into),
        }
    }
}

impl State {
    fn config(&self, domains: &[DomainConfig]) -> Config {
        let mut config = self.origin.config.clone();
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
        if let Some(clock) = &self.origin.clock {
            builder = builder.clock(clock.clone());
        }
        match self.origin.key {
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

/// Gives a domain that the user did not name a number if another middleware uses its name with
/// other rules. Workers make their middleware in the same order, so all come to the same names.
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

/// Whether two domains count by the same rules, wherever they were written.
fn is_same(a: &DomainConfig, b: &DomainConfig) -> bool {
    (&a.name, &a.rules, a.dry_run) == (&b.name, &b.rules, b.dry_run)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
