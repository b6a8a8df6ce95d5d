//! All code that calls the operating system: clock, randomness and files, and with the features
//! `shared` and `cluster` memory, locks, signals and network interfaces. Clippy forbids such calls
//! elsewhere in the crate (`core/clippy.toml`). This module depends only on errors and on the
//! layout of memory.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system calls belong here")]

pub(crate) mod clock;
#[cfg(all(feature = "cluster", target_os = "linux"))]
pub(crate) mod exchange_lock;
pub(crate) mod file;
#[cfg(all(feature = "shared", unix))]
pub(crate) mod fork;
#[cfg(all(feature = "shared", target_os = "linux"))]
mod fresh;
#[cfg(all(feature = "cluster", unix))]
pub(crate) mod interface;
#[cfg(all(feature = "shared", target_os = "linux"))]
pub(crate) mod lock;
#[cfg(all(feature = "shared", unix))]
pub(crate) mod memory;
#[cfg(all(feature = "shared", target_os = "linux"))]
pub(crate) mod named;
#[cfg(not(all(feature = "shared", target_os = "linux")))]
pub(crate) mod no_lock;
#[cfg(all(feature = "shared", target_os = "linux"))]
pub(crate) mod owner;
pub(crate) mod random;
#[cfg(all(feature = "shared", target_os = "linux"))]
pub(crate) mod rule_lock;
#[cfg(all(feature = "cluster", unix))]
pub(crate) mod signals;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod tsc;
#[cfg(not(all(feature = "shared", target_os = "linux")))]
pub(crate) use no_lock as lock;
#[cfg(not(all(feature = "shared", target_os = "linux")))]
pub(crate) use no_lock as rule_lock;
