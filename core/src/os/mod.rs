//! Everything that asks the operating system: clock, randomness, files, and with the features
//! `shared` and `cluster` memory, locks, signals and interfaces. Elsewhere in the crate clippy
//! refuses it (`core/clippy.toml`). It uses nothing of the rest but errors and the shapes of memory.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this is the place")]

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
