//! Core's records of services on loom's atomics, and the models that test them.

#[path = "../../../src/busy/report.rs"]
#[allow(dead_code, reason = "the models use only a part of it")]
mod report;
#[path = "../../../src/busy/service.rs"]
#[allow(dead_code, reason = "as above")]
mod service;
#[path = "../../../src/busy/set.rs"]
#[allow(dead_code, reason = "as above")]
mod set;

mod cell;

mod services;
