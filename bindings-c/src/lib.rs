//! libdthrottle: dthrottle for C. `make header` writes `include/dthrottle.h` from the exports, so
//! their comments are for its reader.
//!
//! An export converts its arguments, calls the core once and converts the answer back. Pointers
//! are touched in `ffi` alone; `guard!` is the body of every export, so that neither a null
//! pointer nor a panic can pass. The modules are in the order in which the header lists them.
#![expect(
    clippy::missing_safety_doc,
    reason = "the head of the header states what callers promise"
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
