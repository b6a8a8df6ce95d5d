//! Any bytes as what a peer says to an engine, in any order, at any time.
#![no_main]

#[path = "../../core/tests/hostile/engine.rs"]
mod engine;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| engine::try_engine(bytes));
