//! Parses arbitrary bytes as a datagram, and as the body of one.
#![no_main]

#[allow(dead_code, reason = "the tests on stable Rust use the rest")]
#[path = "../../core/tests/hostile/datagram.rs"]
mod datagram;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| datagram::try_all(bytes));
