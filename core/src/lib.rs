//! dthrottle holds every client to a rate, over many processes and hosts, without a server to
//! ask: leaky buckets that decide in-process.
//!
//! ```
//! use dthrottle::{Rule, Throttle};
//!
//! let throttle = Throttle::builder().rule(Rule::per_second(100).burst(200)).build()?;
//! let decision = throttle.check("203.0.113.7")?;
//! assert!(decision.allowed);
//! assert_eq!(decision.remaining, 199);
//! # Ok::<(), dthrottle::Error>(())
//! ```
//!
//! `docs/semantics.md` defines every call and every field; `ARCHITECTURE.md` is the map of this
//! crate.
#![deny(unsafe_code)]

mod builder;
pub mod busy;
mod clock;
mod cluster;
pub mod config;
pub mod convert;
mod domain;
mod error;
#[doc(hidden)]
pub mod internals;
mod limit;
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux", feature = "os", not(miri))),
    allow(dead_code, reason = "the system is asked for the time every time")
)]
mod local;
#[cfg(feature = "os")]
mod os;
mod stats;
#[cfg_attr(
    not(all(feature = "os", target_os = "linux")),
    allow(dead_code, unused_imports, reason = "elsewhere there are no named tables")
)]
mod table;
#[cfg(all(feature = "os", target_os = "linux"))]
pub mod tables;
mod throttle;
mod top;

pub use builder::Builder;
pub use busy::BusyThrottle;
pub use clock::{Clock, ManualClock};
pub use cluster::{ClusterEvent, ClusterStats, PeerStats};
pub use config::{BusyConfig, ClusterConfig, Config, Reports, TableConfig};
pub use domain::{ActiveRule, Domain};
pub use error::{Error, ErrorKind, Result};
pub use limit::decision::{Ask, DEFAULT_COST, Decision, UNLIMITED};
pub use limit::rate::Rate;
pub use limit::rule::Rule;
#[doc(hidden)]
pub use local::Local;
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
