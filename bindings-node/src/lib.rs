//! dthrottle for Node: the native half. The public classes are in `face.js`; what it calls here is
//! written down in `surface.d.ts`. Functions over opaque values rather than native classes: napi
//! takes 300 ns more to find the value behind `this`.
//!
//! Every export carries `catch_unwind`: a panic is an Error in JavaScript, not the end of the
//! process.
#![deny(unsafe_code)] // napi's macros bring code that `forbid` rejects.

pub mod ask;
pub mod clock;
mod common;
pub mod failure;
pub mod open;
