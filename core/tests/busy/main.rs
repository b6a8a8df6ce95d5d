//! The busy throttle: by the calls of an application, by laws, and with servers and clients in
//! virtual time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod tune;
mod world;
