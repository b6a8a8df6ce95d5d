//! Core's records of services on loom's memory, and the model that tries them.

#[path = "../../../src/busy/report.rs"]
#[allow(dead_code, reason = "a model needs less of it than core")]
mod report;
#[path = "../../../src/busy/service.rs"]
#[allow(dead_code, reason = "as above")]
mod service;
#[path = "../../../src/busy/set.rs"]
#[allow(dead_code, reason = "as above")]
mod set;

mod cell;

mod services;
