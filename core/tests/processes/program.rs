//! The path of `core/examples/hammer`, which cargo builds with the tests.

use std::path::PathBuf;

/// Returns the path of the program.
pub(crate) fn path() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples/hammer");
    assert!(path.exists(), "{path:?} is missing; `cargo test --package dthrottle` builds it");
    path
}
