//! dthrottle for Node: the native half. The public classes are in `face/`; what they call here is
//! written down in `surface.d.ts`. Functions over opaque values rather than native classes: those
//! are slower to call (`test/speed.js` measures).
//!
//! Every export carries `catch_unwind`: a panic is an Error in JavaScript, not the end of the
//! process.
#![deny(unsafe_code)] // napi's macros bring code that `forbid` rejects.

pub mod ask;
pub mod clock;
mod common;
pub mod failure;
pub mod open;
