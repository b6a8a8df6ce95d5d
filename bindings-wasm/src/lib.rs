//! dthrottle for WebAssembly: the native half. The public classes are those of Node
//! (`bindings-node/api`); `js/adapt.js` makes of these exports the native part that they need.
//!
//! There is no clock, no file and no socket here. The API moves a manual clock to the host's time before each
//! call. A panic is a trap; the API makes an Error of it.
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
