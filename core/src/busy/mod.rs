//! The client's side: who is told "busy" sends less at once, and comes back gradually.
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
//! Time is an argument, as it is everywhere in the core; `now` reads the clock that it belongs to.
//! `docs/busy.md` tells the whole story.

mod document;
mod live;
mod meter;
mod record;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::document::{NO_LIMIT, Recover};
pub use self::live::Live;
use self::record::{Arithmetic, Record};
use crate::builder::Builder;
use crate::clock::Clock;
use crate::config::{BusyConfig, TableConfig};
use crate::domain::Host;
use crate::error::Result;
use crate::limit::rule::Rule;
use crate::stats::Counter;
use crate::table::fingerprint::{Fingerprints, hash_of, rule_id};
use crate::table::{News, SERVICES, Service, ServiceKey};
use crate::throttle::Throttle;

pub use crate::config::Mode;

/// How many services are remembered at once.
pub const MOST_SERVICES: usize = SERVICES;

/// Slows down what this client sends to services that say they are busy.
///
/// A service is known by any name. Clones are the same throttle; any thread may use it. No call
/// waits, fails or needs an answer to have been asked for.
#[derive(Clone)]
pub struct BusyThrottle(Arc<Inner>);

struct Inner {
    /// Has no rules: its table, and its part in a cluster.
    throttle: Throttle,
    arithmetic: Arithmetic,
    /// Stands for the arithmetic: who counts in another way has records of their own.
    settings: u64,
    fingerprints: Fingerprints,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    sent: Counter,
    held: Counter,
    good: Counter,
    busy: Counter,
    cuts: Counter,
    heard: Counter,
    forgotten: Counter,
}

/// Whether a request may be sent now.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Turn {
    /// Whether it may.
    pub allowed: bool,
    /// If it may not, when it is worth asking again.
    pub wait: Duration,
    /// Requests a second; nothing: there is no limit.
    pub limit: Option<f64>,
}

crate::records!(BusyStats, crate::records::define, Copy, Default);

impl BusyThrottle {
    /// A throttle with the system's clock.
    pub fn new(config: BusyConfig) -> Result<BusyThrottle> {
        BusyThrottle::open(config, Clock::System, None)
    }

    /// A throttle with a clock, such as one moved by hand.
    pub fn with_clock(config: BusyConfig, clock: impl Into<Clock>) -> Result<BusyThrottle> {
        BusyThrottle::open(config, clock.into(), None)
    }

    /// A throttle with a clock and a key that nobody can guess, for hosts whose randomness this
    /// crate cannot reach.
    #[doc(hidden)]
    pub fn with_key(config: BusyConfig, clock: Clock, key: [u64; 2]) -> Result<BusyThrottle> {
        BusyThrottle::open(config, clock, Some(key))
    }

    fn open(config: BusyConfig, clock: Clock, key: Option<[u64; 2]>) -> Result<BusyThrottle> {
        config.check()?;
        let throttle = BusyThrottle::part(&config, clock, key)?;
        BusyThrottle::on(&throttle, config)
    }

    /// The throttle without rules whose table and part in a cluster it has.
    fn part(config: &BusyConfig, clock: Clock, key: Option<[u64; 2]>) -> Result<Throttle> {
        // Without a name it holds no buckets: one is the least there can be.
        let table = config.table.clone().unwrap_or_else(|| TableConfig::anonymous().tags(1));
        let mut builder = Builder::default().rule(Rule::unlimited()).table(table).clock(clock);
        if let Some(key) = key {
            builder = builder.fingerprint_key(key);
        }
        if let Some(cluster) = &config.cluster {
            builder.config.set_cluster(cluster.clone().busy_by_default());
        }
        builder.build()
    }

    /// One on the table of a throttle, and with its part in a cluster, whatever the settings say
    /// about both.
    #[doc(hidden)]
    pub fn on(throttle: &Throttle, config: BusyConfig) -> Result<BusyThrottle> {
        config.check()?;
        let arithmetic = Arithmetic::of(&config);
        let throttle = throttle.clone();
        let fingerprints = Fingerprints::new(throttle.0.host.key, rule_id("", "busy"));
        let settings = hash_of(format!("{arithmetic:?}").as_bytes());
        let counts = Counts::default();
        Ok(BusyThrottle(Arc::new(Inner { throttle, arithmetic, settings, fingerprints, counts })))
    }

    /// Starts the exchange with the cluster in this process, unless it has started: otherwise the
    /// first request does. Without a cluster there is nothing to start.
    pub fn start(&self) {
        // It is never closed.
        let _ = self.0.throttle.start();
    }

    /// The throttle without rules that is its part in a cluster, for hosts that carry the datagrams
    /// themselves.
    #[doc(hidden)]
    pub fn node(&self) -> &Throttle {
        &self.0.throttle
    }

    /// The time by the throttle's clock.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.host().clock.clock().now_ns())
    }

    /// Whether a request may be sent now. If it may, it counts as sent.
    pub fn should_send(&self, service: impl AsRef<[u8]>, now: Duration) -> bool {
        self.turn(service, now).allowed
    }

    /// The same, with the wait and the limit.
    pub fn turn(&self, service: impl AsRef<[u8]>, now: Duration) -> Turn {
        let now = self.time(now);
        let turn = self.record(self.key(service.as_ref()), now).turn(now);
        match turn.allowed {
            true => self.0.counts.sent.add(1),
            false => self.0.counts.held.add(1),
        }
        turn
    }

    /// The service said that it is busy, and maybe for how long nothing should be sent.
    pub fn on_busy(&self, service: impl AsRef<[u8]>, now: Duration, retry_after: Option<Duration>) {
        let now = self.time(now);
        let key = self.key(service.as_ref());
        self.is_busy(self.record(key, now), key, now, retry_after.map(nanoseconds));
    }

    /// The same, of a service whose place was found a moment ago.
    fn is_busy(&self, record: Record<'_>, key: ServiceKey, now: u64, retry_after: Option<u64>) {
        let (cut, news) =
            record.service.step(key, |writer| record.on_busy(writer, now, retry_after));
        if let Some(news) = news {
            self.host().table.say(record.service, key, news);
        }
        self.0.counts.busy.add(1);
        self.0.counts.cuts.add(cut.into());
    }

    /// The service gave any other answer.
    pub fn on_ok(&self, service: impl AsRef<[u8]>, now: Duration) {
        let now = self.time(now);
        self.record(self.key(service.as_ref()), now).on_ok(now);
        self.0.counts.good.add(1);
    }

    /// The limit of a service in requests a second; nothing: there is none.
    pub fn limit(&self, service: impl AsRef<[u8]>, now: Duration) -> Option<f64> {
        let now = self.time(now);
        self.known(self.key(service.as_ref()), now).and_then(|record| record.limit(now))
    }

    /// How many requests were sent to a service in the last second.
    pub fn rate(&self, service: impl AsRef<[u8]>, now: Duration) -> f64 {
        let now = self.time(now);
        self.known(self.key(service.as_ref()), now).map_or(0.0, |record| record.rate(now))
    }

    /// Forgets a service, and with it its limit and what peers have said of it so far.
    pub fn forget(&self, service: impl AsRef<[u8]>) {
        self.host().table.forget_service(self.key(service.as_ref()));
    }

    /// What the throttle counted so far.
    pub fn stats(&self, now: Duration) -> BusyStats {
        let now = self.time(now);
        let counts = &self.0.counts;
        let table = &self.host().table;
        let records = table.services().map(|service| self.record_of(service));
        BusyStats {
            sent: counts.sent.get(),
            held: counts.held.get(),
            good: counts.good.get(),
            busy: counts.busy.get(),
            cuts: counts.cuts.get(),
            heard: counts.heard.get(),
            forgotten: counts.forgotten.get(),
            services: records.filter(|record| !record.is_idle(now)).count() as u64,
            // What is known of them is of no use when nobody exchanges any more.
            peers: if table.is_exchanged(now) { table.nodes().saturating_sub(1) } else { 0 },
        }
    }

    /// What is not as it was asked for, such as a named table that could not be shared by name.
    pub fn warnings(&self) -> &[String] {
        &self.host().warnings
    }

    fn time(&self, now: Duration) -> u64 {
        self.host().clock.table_ns(nanoseconds(now))
    }

    fn host(&self) -> &Host {
        &self.0.throttle.0.host
    }

    fn key(&self, service: &[u8]) -> ServiceKey {
        ServiceKey::new(self.0.fingerprints.of(service), self.0.settings)
    }

    /// The record of a service, which gets one if it has none, with what peers said of it.
    fn record(&self, key: ServiceKey, now: u64) -> Record<'_> {
        self.start();
        let worth = |service: &Service| self.record_of(service).worth(now);
        let (service, lost) = self.host().table.take_service(key, now, worth);
        self.0.counts.forgotten.add(record::had_limit(lost).into());
        let record = self.record_of(service);
        record.touch(now);
        self.listen(record, key, now)
    }

    fn known(&self, key: ServiceKey, now: u64) -> Option<Record<'_>> {
        let record = self.record_of(self.host().table.find_service(key)?);
        // Who only looks leaves the news to who asks next, before whom an idle one is forgotten.
        if record.is_idle(now) { None } else { Some(self.listen(record, key, now)) }
    }

    fn listen<'a>(&self, record: Record<'a>, key: ServiceKey, now: u64) -> Record<'a> {
        if let Some(news) = record.service.take_heard(key.name()) {
            self.heed(record, key, now, news);
        }
        record
    }

    /// Takes into account what peers said of a service whose place was found a moment ago.
    fn heed(&self, record: Record<'_>, key: ServiceKey, now: u64, news: News) {
        record.service.step(key, |writer| record.on_heard(writer, now, news));
        self.0.counts.heard.add(news.answers);
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
