//! The protocol of core's table under every interleaving of threads, and every stale value that
//! the memory model allows.
//!
//! The files that say how slots are found, claimed and drained are core's own. Only the memory
//! below them is loom's, and the loop above them is written again in `model.rs`.
#![cfg(test)]

mod busy;
mod limit;
mod table;
