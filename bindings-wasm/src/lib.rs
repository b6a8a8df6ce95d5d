//! The native part of dthrottle for WebAssembly. The public classes are those of Node
//! (`bindings-node/api`); `js/adapt.js` converts these exports to the native part that they need.
//!
//! There are no clocks, files and sockets in WebAssembly. The API sets a manual clock to the host's
//! time before each call. A panic is a trap, which the API converts to an Error.
#![forbid(unsafe_code)]

pub mod busy;
pub mod calls;
pub mod clock;
#[path = "../../bindings-node/src/common/mod.rs"]
mod common;
pub mod failure;
pub mod link;
pub mod open;
pub mod web;
