//! Tests of the real daemon through real sockets.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod common;
mod files;
mod lifecycle;
mod lines;
mod sockets;
