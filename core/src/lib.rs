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
//! Parts are cargo features; the README lists them.
//! `docs/semantics.md` defines every call and every field; `ARCHITECTURE.md` is the map of this
//! crate.
#![deny(unsafe_code)]
// The layout of tables, the arithmetic and the clock are the same in every build. Where a part that
// uses some of it is left out, that is no mistake; the whole crate is checked for unused code.
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
