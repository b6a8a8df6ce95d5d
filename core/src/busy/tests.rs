//! What no application can time: other processes and peers between the steps of a call, and memory
//! with anything in it.

mod hostile;
mod late;
mod report;
mod service;
mod share;
