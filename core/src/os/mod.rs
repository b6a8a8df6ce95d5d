//! Everything that asks the operating system: clock, randomness, files. Elsewhere in the crate
//! clippy refuses it (`core/clippy.toml`).
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this is the place")]

pub(crate) mod clock;
pub(crate) mod file;
pub(crate) mod random;
