//! Where `core/examples/hammer` is, which cargo builds with the tests.

use std::path::PathBuf;

/// The program.
pub(crate) fn path() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples/hammer");
    assert!(path.exists(), "{path:?} is missing; `cargo test --package dthrottle` builds it");
    path
}
