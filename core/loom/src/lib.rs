//! Model tests of core's table: every interleaving of a few threads, and every stale value that the
//! memory model allows.
//!
//! The files that find, claim and drain slots are core's own. Only the memory below them is loom's,
//! and the loop above them is reimplemented in `model.rs`.
#![cfg(test)]

mod busy;
mod limit;
mod table;
