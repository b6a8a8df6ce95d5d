//! libdthrottle: dthrottle for C. `make header` generates `include/dthrottle.h` from the exports.
//! Users of C read the comments of the exports there.
//!
//! An export converts its arguments, calls the core once and converts the result. Only `ffi` uses
//! pointers. `guard!` is the body of every export, so an invalid pointer becomes an error, and no
//! panic reaches C. The modules are in the order of the header.
#![expect(
    clippy::missing_safety_doc,
    reason = "the start of the header states what callers promise"
)]

#[macro_use]
mod ffi;
mod address;
mod connections;
mod guard;
mod lines;

pub mod records;
pub mod status;
pub mod throttle;

pub mod inspect;

pub mod domain;

pub mod decision;

pub mod web;

pub mod middleware;

pub mod cluster;

pub mod config;

pub mod tables;

pub mod clock;

pub mod busy;

pub mod client;

#[cfg(test)]
mod export_checks;
