//! dthrottle is a rate limiter. It decides inside the process, and its limits can hold for all
//! processes of a machine and for all hosts of a cluster, without a server.
//!
//! # Quick start
//!
//! Build a [`Throttle`] with a [`Rule`] and check each request. A *tag* identifies the client: an
//! IP address, an account, an API key. Each tag has its own bucket, which holds up to `burst` units
//! and fills at the rate of the rule.
//!
//! ```
//! use dthrottle::{Rule, Throttle};
//!
//! let throttle = Throttle::builder().rule(Rule::per_second(100).burst(200)).build()?;
//! assert!(throttle.allow("203.0.113.7")?);
//!
//! let decision = throttle.check("203.0.113.7")?;
//! assert!(decision.allowed);
//! assert_eq!(decision.limit, 200);
//! # Ok::<(), dthrottle::Error>(())
//! ```
//!
//! [`allow`](Domain::allow) returns whether the request may proceed. [`check`](Domain::check)
//! returns a [`Decision`] with everything that a response needs, such as the time to retry. Being
//! throttled is a decision, not an [`Error`].
//!
//! # Costs and options
//!
//! [`CheckOptions`] sets the cost of a check and how it treats a bucket with too few units.
//!
//! ```
//! use dthrottle::{CheckOptions, ManualClock, Rule, Throttle};
//!
//! let rule = Rule::per_minute(100);
//! let throttle = Throttle::builder().rule(rule).clock(ManualClock::new()).build()?;
//! assert!(throttle.check_with("alice", CheckOptions::cost(80))?.allowed);
//! let decision = throttle.check_with("alice", CheckOptions::cost(80).partial(true))?;
//! assert_eq!(decision.granted, 20);
//! # Ok::<(), dthrottle::Error>(())
//! ```
//!
//! # Several rules and domains
//!
//! A [`Domain`] is a named list of rules. A check passes if every rule of its domain allows it.
//! Each domain counts separately, so a throttle can have one for logins, one for searches and so
//! on.
//!
//! ```
//! use dthrottle::{ManualClock, Rule, Throttle};
//!
//! let throttle = Throttle::builder()
//!     .rule(Rule::per_second(100))
//!     .domain("login", [Rule::per_minute(5).name("minute"), Rule::parse("50/day").name("day")])
//!     .clock(ManualClock::new())
//!     .build()?;
//! let login = throttle.domain("login")?; // look it up once and keep it
//! assert!((0..5).all(|_| login.allow("alice").unwrap()));
//! let decision = login.check("alice")?;
//! assert_eq!(login.refused_by(&decision), Some("minute"));
//! # Ok::<(), dthrottle::Error>(())
//! ```
//!
//! # Delaying instead of refusing
//!
//! With [`CheckOptions::max_delay`], a check is also allowed if the units become available within
//! that time. The caller waits for [`Decision::delay`] before it proceeds.
//!
//! ```
//! use std::time::Duration;
//! use dthrottle::{CheckOptions, Rule, Throttle};
//!
//! let throttle = Throttle::builder().rule(Rule::per_second(100).burst(1)).build()?;
//! let options = CheckOptions::default().max_delay(Duration::from_secs(1));
//! for _ in 0..3 {
//!     let decision = throttle.check_with("alice", options)?;
//!     assert!(decision.allowed);
//!     std::thread::sleep(decision.delay);
//! }
//! # Ok::<(), dthrottle::Error>(())
//! ```
//!
//! # Sharing buckets
//!
//! The table that stores the buckets is shared with all children that are forked later. A [named
//! table](TableConfig::named) is shared by all processes of a user, whatever language they are
//! written in. Such tables need Linux.
//!
//! ```no_run
//! use dthrottle::{Rule, TableConfig, Throttle};
//!
//! let table = TableConfig::named("web");
//! let throttle = Throttle::builder().rule(Rule::per_second(100)).table(table).build()?;
//! assert!(throttle.allow("alice")?);
//! # Ok::<(), dthrottle::Error>(())
//! ```
//!
//! # Clusters
//!
//! With the feature `cluster`, the nodes of a cluster report to each other what they admitted, over
//! UDP. Checks never wait for the network. `docs/cluster.md` describes what that means for a limit.
//!
//! ```no_run
//! use dthrottle::{ClusterConfig, Rule, Throttle};
//!
//! let cluster = ClusterConfig::new("web")
//!     .secret("at least sixteen bytes")
//!     .listen("10.0.0.1:7373")
//!     .peer("10.0.0.2:7373");
//! let throttle = Throttle::builder().rule(Rule::per_second(100)).cluster(cluster).build()?;
//! assert!(throttle.allow("203.0.113.7")?);
//! # Ok::<(), dthrottle::Error>(())
//! ```
//!
//! # Configuration files
//!
//! With the feature `config`, a throttle can be built from TOML. `docs/configuration.md` lists all
//! keys.
//!
//! ```
//! use dthrottle::Throttle;
//!
//! let throttle = Throttle::from_toml(
//!     r#"
//!     rate = "100/s"
//!     burst = 200
//!
//!     [domains.login]
//!     rate = "5 per minute"
//!     "#,
//! )?;
//! assert!(throttle.domain("login")?.allow("alice")?);
//! # Ok::<(), dthrottle::Error>(())
//! ```
//!
//! # Testing
//!
//! With a [`ManualClock`], tests need not wait and are exact.
//!
//! ```
//! use std::time::Duration;
//! use dthrottle::{ManualClock, Rule, Throttle};
//!
//! let clock = ManualClock::new();
//! let throttle = Throttle::builder().rule(Rule::per_minute(1)).clock(clock.clone()).build()?;
//! assert!(throttle.allow("alice")?);
//! assert_eq!(throttle.check("alice")?.retry_after, Duration::from_secs(60));
//! clock.advance(Duration::from_secs(60));
//! assert!(throttle.allow("alice")?);
//! # Ok::<(), dthrottle::Error>(())
//! ```
//!
//! # Features
//!
//! | Feature | What it adds |
//! |---|---|
//! | `shared` (default) | tables shared with forked children, or by name with other processes |
//! | `cluster` | nodes that report to each other over UDP; includes `shared` |
//! | `config` | configurations as TOML text and files |
//! | `web` | the policy of HTTP middleware |
//! | `busy` | `BusyThrottle`, which slows down when a called service answers 429 or 503 |
//! | `serde` | serialization of decisions and statistics, deserialization of configurations |
//!
//! `docs/semantics.md` defines every call and every field.
#![deny(unsafe_code)]
// The table, the arithmetic and the clock are the same in every build. A build without all features
// does not use all of them, so only the complete crate is checked for unused code.
#![cfg_attr(
    not(all(
        feature = "busy",
        feature = "cluster",
        feature = "config",
        feature = "web",
        target_os = "linux",
        target_arch = "x86_64",
        not(miri)
    )),
    allow(dead_code, unreachable_code, unreachable_pub, unused_imports)
)]

mod builder;
#[cfg(feature = "busy")]
pub mod busy;
mod clock;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "no_cluster.rs"]
mod cluster;
pub mod config;
pub mod convert;
mod domain;
mod error;
#[cfg(feature = "cluster")]
#[doc(hidden)]
pub mod internals;
mod limit;
mod local;
mod os;
#[doc(hidden)]
pub mod records;
mod stats;
mod table;
#[cfg(all(feature = "shared", target_os = "linux"))]
pub mod tables;
mod throttle;
mod top;
#[cfg(feature = "web")]
pub mod web;

pub use builder::Builder;
#[cfg(feature = "busy")]
pub use busy::BusyThrottle;
pub use clock::{Clock, ManualClock};
#[cfg(feature = "cluster")]
pub use cluster::{ClusterEvent, ClusterStats, PeerStats};
#[cfg(feature = "busy")]
pub use config::BusyConfig;
#[cfg(feature = "cluster")]
pub use config::{ClusterConfig, Reports};
pub use config::{Config, TableConfig};
pub use domain::{ActiveRule, Domain};
pub use error::{Error, ErrorKind, Result};
pub use limit::decision::{CheckOptions, DEFAULT_COST, Decision, UNLIMITED};
pub use limit::rate::Rate;
pub use limit::rule::Rule;
pub use stats::Stats;
pub use throttle::Throttle;
pub use top::TopBucket;

/// The Rust blocks of the READMEs, run as doctests.
#[cfg(doctest)]
mod readme {
    #[doc = include_str!("../README.md")]
    struct Core;
    #[doc = include_str!("../../README.md")]
    struct Project;
}
