//! The table's claims and drains, compiled with loom's atomics, and the models that test them.

#[path = "../../../src/table/dirty.rs"]
mod dirty;
#[path = "../../../src/table/line.rs"]
#[allow(dead_code, reason = "the models use only a part of it")]
mod line;
#[path = "../../../src/table/slot.rs"]
#[allow(dead_code, reason = "as above")]
mod slot;

pub(crate) mod cell;
mod model;
pub(crate) mod monitor;
mod mutated_claim;
pub(crate) mod mutation;

mod claims;
mod drains;
mod takeovers;
