//! Many real processes on one table: exact results, also after kills.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real processes")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod crash;
mod exact;
mod fault;
mod folder;
mod hammer;
mod lock;
mod program;
mod race;
mod rules;
mod tasks;
