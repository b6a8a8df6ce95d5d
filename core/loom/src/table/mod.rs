//! Core's protocol on loom's memory, and the models that try it.

#[path = "../../../src/table/dirty.rs"]
mod dirty;
#[path = "../../../src/table/line.rs"]
#[allow(dead_code, reason = "a model needs less of it than core")]
mod line;
#[path = "../../../src/table/news.rs"]
#[allow(dead_code, unreachable_pub, reason = "as above")]
mod news;
#[path = "../../../src/table/service.rs"]
#[allow(dead_code, reason = "as above")]
mod service;
#[path = "../../../src/table/set.rs"]
#[allow(dead_code, reason = "as above")]
mod set;
#[path = "../../../src/table/slot.rs"]
#[allow(dead_code, reason = "as above")]
mod slot;

mod cell;
mod mistake;
mod mistaken;
mod model;
mod witness;

mod claims;
mod drains;
mod services;
mod takeovers;
