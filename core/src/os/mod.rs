//! Everything that asks the operating system: clock, randomness, files. Elsewhere in the crate
//! clippy refuses it (`core/clippy.toml`).
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this is the place")]

pub(crate) mod clock;
pub(crate) mod file;
#[cfg(unix)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "what it guards is for Linux"))]
pub(crate) mod fork;
#[cfg(unix)]
pub(crate) mod interface;
#[cfg(target_os = "linux")]
pub(crate) mod lock;
#[cfg(unix)]
pub(crate) mod memory;
#[cfg(target_os = "linux")]
pub(crate) mod named;
#[cfg(target_os = "linux")]
pub(crate) mod owner;
pub(crate) mod random;
#[cfg(target_os = "linux")]
pub(crate) mod rule_lock;
#[cfg(unix)]
pub(crate) mod signals;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod tsc;
