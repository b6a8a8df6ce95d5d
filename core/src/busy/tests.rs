//! Tests that need access to internals: other processes and peers between the steps of a call, and
//! memory with arbitrary content.

mod hostile;
mod late;
mod report;
mod service;
mod share;
