//! The real daemon, asked through real sockets.

mod common;
mod life;
mod lines;
