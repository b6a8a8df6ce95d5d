//! The native part of dthrottle for Node. The public classes are in `api/`; `surface.d.ts`
//! describes the exports that they call. The calls of every request do not use napi's macros: they
//! are in `hot.rs`, on top of `raw.rs` (measured by `test/speed.js`).
//!
//! Every export catches panics, by `catch_unwind` in its attribute or in `raw.rs`. A panic becomes
//! an Error in JavaScript and does not end the process.
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
