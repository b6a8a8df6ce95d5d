//! Limits the requests of a client to services that answer "busy" (429 or 503): fewer requests
//! immediately, and more again as the service recovers.
//!
//! ```
//! use std::time::Duration;
//! use dthrottle::{BusyConfig, BusyThrottle};
//!
//! let busy = BusyThrottle::new(BusyConfig::new())?;
//! let now = busy.now();
//! assert!(busy.should_send("api.example.com", now));
//! busy.on_busy("api.example.com", now, Some(Duration::from_secs(2)));
//! let turn = busy.turn("api.example.com", now);
//! assert!(!turn.allowed && turn.wait == Duration::from_secs(2));
//! # Ok::<(), dthrottle::Error>(())
//! ```
//!
//! Time is an argument; `now` reads the throttle's clock. `docs/busy.md` describes the arithmetic.

// This folder owns the memory of busy responses (`region.rs`, `open.rs`, `named.rs`), the records of
// services in it (`store.rs`, `set.rs`, `service.rs`, `report.rs`), the arithmetic of limits
// (`record.rs`, `live.rs`, `document.rs`, `meter.rs`), and the exchange of busy responses between
// nodes (`share.rs`, `wire.rs`). It uses the same fingerprints and the same kind of named files as
// the bucket table, which does not depend on it.

mod cell;
mod document;
#[cfg(all(feature = "cluster", target_os = "linux"))]
mod join;
mod live;
mod meter;
#[cfg(all(feature = "shared", target_os = "linux"))]
mod named;
mod open;
mod record;
mod region;
mod report;
mod service;
mod set;
#[cfg(feature = "cluster")]
mod share;
mod store;
#[cfg(feature = "cluster")]
pub(crate) mod wire;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use self::document::{NO_LIMIT, Recover};
#[cfg(all(feature = "cluster", target_os = "linux"))]
pub(crate) use self::join::join_cluster;
pub use self::live::Live;
use self::record::{Arithmetic, Record};
#[cfg(all(feature = "shared", target_os = "linux"))]
pub(crate) use self::region::BusyRegion;
use self::report::BusyReport;
use self::service::{Service, ServiceKey};
#[cfg(feature = "cluster")]
use self::share::BusyPayload;
use self::store::Store;
use crate::builder::Builder;
use crate::clock::Clock;
#[cfg(feature = "cluster")]
use crate::cluster::Payload;
use crate::config::{BusyConfig, ClusterConfig, TableConfig};
use crate::error::{Error, ErrorKind, Result};
use crate::limit::rule::Rule;
use crate::stats::Counter;
use crate::table::fingerprint::{Fingerprints, hash_of, rule_id};
use crate::throttle::Throttle;

pub use crate::config::Mode;

/// The maximum number of services that have a record at the same time.
pub const MAX_SERVICES: usize = region::SERVICES;

/// Limits the requests that this client sends to services that answer "busy".
///
/// A service is identified by a name of your choice. Clones share one throttle, which any thread
/// may use. No call about a service blocks or fails, and responses may be reported without a
/// request.
#[derive(Clone)]
pub struct BusyThrottle(Arc<Inner>);

struct Inner {
    store: Arc<Store>,
    /// The node of a cluster: a throttle without rules.
    node: Option<Throttle>,
    warnings: Vec<String>,
    closed: AtomicBool,
    arithmetic: Arithmetic,
    /// Hash of the arithmetic's settings: throttles with different settings have separate records.
    settings: u64,
    fingerprints: Fingerprints,
    counts: BusyCounters,
}

#[derive(Default)]
struct BusyCounters {
    sent: Counter,
    refused: Counter,
    good: Counter,
    busy: Counter,
    cuts: Counter,
    remote_busy: Counter,
    forgotten: Counter,
}

/// The answer of [`BusyThrottle::turn`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Turn {
    /// Whether a request may be sent now.
    pub allowed: bool,
    /// If it may not, the time to wait before the next attempt; otherwise zero.
    pub wait: Duration,
    /// The limit in requests per second. `None` if there is no limit.
    pub limit: Option<f64>,
}

crate::records!(BusyStats, crate::records::define, Copy, Default);

impl BusyThrottle {
    /// Creates a throttle that uses the system clock.
    ///
    /// # Errors
    /// A setting is invalid, the table cannot be opened, or the cluster cannot be joined.
    pub fn new(config: BusyConfig) -> Result<BusyThrottle> {
        BusyThrottle::open(config, Clock::System, None)
    }

    /// Creates a throttle that uses this clock, such as a `ManualClock`.
    ///
    /// # Errors
    /// Like `new`. A manual clock also requires a table that is not named.
    pub fn with_clock(config: BusyConfig, clock: impl Into<Clock>) -> Result<BusyThrottle> {
        BusyThrottle::open(config, clock.into(), None)
    }

    /// Creates a throttle with this clock and this secret key of fingerprints, for hosts without a
    /// source of randomness that this crate supports.
    #[doc(hidden)]
    pub fn with_key(config: BusyConfig, clock: Clock, key: [u64; 2]) -> Result<BusyThrottle> {
        BusyThrottle::open(config, clock, Some(key))
    }

    fn open(config: BusyConfig, clock: Clock, key: Option<[u64; 2]>) -> Result<BusyThrottle> {
        config.check()?;
        let mut table = config.table.clone().unwrap_or_else(TableConfig::anonymous);
        let node = config.cluster.clone();
        let node = node.map(|cluster| BusyThrottle::join(cluster, &table, clock.clone(), key));
        let node = node.transpose()?;
        let (mut key, mut warnings) = (key, Vec::new());
        if let Some(node) = &node {
            key = Some(node.host().key);
            warnings.extend_from_slice(node.warnings());
            // The node may use another name for the table, or none.
            if table.name().is_some() {
                table = node.host().named.clone().unwrap_or_else(TableConfig::anonymous);
            }
        }
        let opened = open::open(&table, clock, key)?;
        warnings.extend(opened.warnings);
        warnings.dedup();
        let store = Arc::new(opened.store);
        #[cfg(feature = "cluster")]
        if let Some(node) = node.as_ref().and_then(Throttle::node) {
            node.set_payload(BusyPayload::maker(Arc::clone(&store), node.shares_busy()));
        }
        let arithmetic = Arithmetic::of(&config);
        Ok(BusyThrottle(Arc::new(Inner {
            fingerprints: Fingerprints::new(store.key, rule_id("", "busy")),
            settings: hash_of(format!("{arithmetic:?}").as_bytes()),
            counts: BusyCounters::default(),
            closed: AtomicBool::new(false),
            store,
            node,
            warnings,
            arithmetic,
        })))
    }

    /// Creates the cluster node. It has no buckets, so an unnamed table gets the smallest size.
    fn join(
        cluster: ClusterConfig,
        table: &TableConfig,
        clock: Clock,
        key: Option<[u64; 2]>,
    ) -> Result<Throttle> {
        let table = if table.name().is_some() { table.clone() } else { table.clone().tags(1) };
        let mut builder = Builder::default().rule(Rule::unlimited()).table(table).clock(clock);
        if let Some(key) = key {
            builder = builder.fingerprint_key(key);
        }
        builder.config.set_cluster(cluster.busy_by_default());
        builder.build()
    }

    /// Starts the exchange with the cluster in this process, unless it has started. Otherwise the
    /// first request starts it. Does nothing without a cluster.
    pub fn start(&self) {
        if let Some(node) = &self.0.node {
            // Fails only if the node is closed.
            let _ = node.start();
        }
    }

    /// Leaves the cluster, and marks the throttle as closed.
    pub fn close(&self) {
        // Relaxed: nothing else is published with it.
        self.0.closed.store(true, Ordering::Relaxed);
        if let Some(node) = &self.0.node {
            node.close();
        }
    }

    /// Checks that the throttle is open. The other calls do not check this.
    ///
    /// # Errors
    /// The throttle is closed.
    pub fn check_open(&self) -> Result<()> {
        match self.0.closed.load(Ordering::Relaxed) {
            true => Err(Error::new(ErrorKind::Closed, "the throttle is closed; open a new one")),
            false => Ok(()),
        }
    }

    /// The node of the cluster, for hosts that transport the datagrams themselves.
    #[doc(hidden)]
    pub fn node(&self) -> Option<&Throttle> {
        self.0.node.as_ref()
    }

    /// Returns the payload source that shares busy responses with the other nodes of a cluster.
    /// With `is_shared` false, it shares only while another process of the same memory requests
    /// that.
    #[cfg(feature = "cluster")]
    #[doc(hidden)]
    pub fn payload(&self, is_shared: bool) -> Box<dyn Payload> {
        Box::new(BusyPayload::new(Arc::clone(&self.0.store), is_shared))
    }

    /// The current time of the throttle's clock.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.0.store.clock.clock().now_ns())
    }

    /// Returns true if a request may be sent now. If so, it counts as sent.
    pub fn should_send(&self, service: impl AsRef<[u8]>, now: Duration) -> bool {
        self.turn(service, now).allowed
    }

    /// Like `should_send`, but also returns the wait and the limit.
    pub fn turn(&self, service: impl AsRef<[u8]>, now: Duration) -> Turn {
        let now = self.time(now);
        let turn = self.record(self.key(service.as_ref()), now).turn(now);
        match turn.allowed {
            true => self.0.counts.sent.add(1),
            false => self.0.counts.refused.add(1),
        }
        turn
    }

    /// Reports that the service answered "busy". `retry_after` is the time for which it asked for
    /// no requests, if it did.
    pub fn on_busy(&self, service: impl AsRef<[u8]>, now: Duration, retry_after: Option<Duration>) {
        let now = self.time(now);
        let key = self.key(service.as_ref());
        self.apply_busy(self.record(key, now), key, now, retry_after.map(nanoseconds));
    }

    /// Like `on_busy`, for a service whose record was found a moment ago.
    fn apply_busy(&self, record: Record<'_>, key: ServiceKey, now: u64, retry_after: Option<u64>) {
        let (cut, report) =
            record.service.step(key, |writer| record.on_busy(writer, now, retry_after));
        if let Some(report) = report {
            self.0.store.add_local_busy(record.service, key, report);
        }
        self.0.counts.busy.add(1);
        self.0.counts.cuts.add(cut.into());
    }

    /// Reports any other response of the service.
    pub fn on_ok(&self, service: impl AsRef<[u8]>, now: Duration) {
        let now = self.time(now);
        self.record(self.key(service.as_ref()), now).on_ok(now);
        self.0.counts.good.add(1);
    }

    /// Returns the limit of a service in requests per second, or `None` if there is none.
    pub fn limit(&self, service: impl AsRef<[u8]>, now: Duration) -> Option<f64> {
        let now = self.time(now);
        self.find_record(self.key(service.as_ref()), now).and_then(|record| record.limit(now))
    }

    /// Returns how many requests were sent to a service in the last second.
    pub fn rate(&self, service: impl AsRef<[u8]>, now: Duration) -> f64 {
        let now = self.time(now);
        self.find_record(self.key(service.as_ref()), now).map_or(0.0, |record| record.rate(now))
    }

    /// Forgets a service: its limit, and what peers have reported about it so far.
    pub fn forget(&self, service: impl AsRef<[u8]>) {
        self.0.store.forget(self.key(service.as_ref()));
    }

    /// Returns the counters of this throttle, and the current numbers of services and peers.
    pub fn stats(&self, now: Duration) -> BusyStats {
        let now = self.time(now);
        let counts = &self.0.counts;
        let store = &self.0.store;
        let records = store.services().map(|service| self.record_of(service));
        BusyStats {
            sent: counts.sent.get(),
            refused: counts.refused.get(),
            good: counts.good.get(),
            busy: counts.busy.get(),
            cuts: counts.cuts.get(),
            remote_busy: counts.remote_busy.get(),
            forgotten: counts.forgotten.get(),
            services: records.filter(|record| !record.is_idle(now)).count() as u64,
            peers: store.peers(now),
        }
    }

    /// Returns the settings that could not be applied, such as a named table that could not be
    /// shared by name.
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    fn time(&self, now: Duration) -> u64 {
        self.0.store.clock.table_ns(nanoseconds(now))
    }

    fn key(&self, service: &[u8]) -> ServiceKey {
        ServiceKey::new(self.0.fingerprints.of(service), self.0.settings)
    }

    /// Returns the record of a service, which gets one if it has none, after applying what peers
    /// reported.
    fn record(&self, key: ServiceKey, now: u64) -> Record<'_> {
        self.start();
        let value = |service: &Service| self.record_of(service).value(now);
        let (service, lost) = self.0.store.take(key, now, value);
        self.0.counts.forgotten.add(record::had_limit(lost).into());
        let record = self.record_of(service);
        record.touch(now);
        self.apply_remote_busy(record, key, now)
    }

    /// Returns the record of a service that is not idle.
    fn find_record(&self, key: ServiceKey, now: u64) -> Option<Record<'_>> {
        let record = self.record_of(self.0.store.find(key)?);
        // A query takes no report of an idle service, because the next request would reset the
        // record.
        match record.is_idle(now) {
            true => None,
            false => Some(self.apply_remote_busy(record, key, now)),
        }
    }

    fn apply_remote_busy<'a>(&self, record: Record<'a>, key: ServiceKey, now: u64) -> Record<'a> {
        if let Some(report) = record.service.take_remote_busy(key.name()) {
            self.on_remote_busy(record, key, now, report);
        }
        record
    }

    /// Applies what peers reported about a service whose record was found a moment ago.
    fn on_remote_busy(&self, record: Record<'_>, key: ServiceKey, now: u64, report: BusyReport) {
        record.service.step(key, |writer| record.on_remote_busy(writer, now, report));
        self.0.counts.remote_busy.add(report.answers);
    }

    fn record_of<'a>(&'a self, service: &'a Service) -> Record<'a> {
        Record { service, arithmetic: &self.0.arithmetic }
    }
}

impl fmt::Debug for BusyThrottle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusyThrottle").field("arithmetic", &self.0.arithmetic).finish()
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
