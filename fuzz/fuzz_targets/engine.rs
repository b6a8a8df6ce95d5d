//! Sends arbitrary datagrams of a peer to an engine, in any order and at any time.
#![no_main]

#[path = "../../core/tests/hostile/engine.rs"]
mod engine;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| engine::try_engine(bytes));
