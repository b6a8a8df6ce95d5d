//! dthrottle for Node: the native half. The public classes are in `api/`; what they call here is
//! written down in `surface.d.ts`. What every request waits for does without napi's macros, in
//! `hot.rs` on `raw.rs` (`test/speed.js` measures).
//!
//! Every export carries `catch_unwind`, or goes through `raw.rs`, which has it: a panic is an Error
//! in JavaScript, not the end of the process.
#![deny(unsafe_code)] // napi's macros bring code that `forbid` rejects.

pub mod busy;
pub mod calls;
pub mod clock;
mod common;
pub mod failure;
pub mod hot;
pub mod open;
mod raw;
mod registry;
pub mod web;
