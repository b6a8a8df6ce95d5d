//! Everything that asks the operating system: clock, randomness, files. Elsewhere in the crate
//! clippy refuses it (`core/clippy.toml`).
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this is the place")]

pub(crate) mod clock;
pub(crate) mod file;
#[cfg(unix)]
pub(crate) mod interface;
#[cfg(unix)]
pub(crate) mod memory;
#[cfg(target_os = "linux")]
pub(crate) mod named;
pub(crate) mod random;
#[cfg(unix)]
pub(crate) mod signals;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod tsc;
