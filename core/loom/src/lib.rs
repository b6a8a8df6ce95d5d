//! Model tests of core's table: every interleaving of a few threads, and every stale value that the
//! memory model allows.
//!
//! The files that find, claim and drain slots are core's own, compiled with loom's atomics.
//! `model.rs` reimplements the loop that calls them.
#![cfg(test)]

mod busy;
mod limit;
mod table;
