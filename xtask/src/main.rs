//! Build steps that need more than a shell command:
//! `cargo run -p xtask -- deny | header | records | wasm`.
#![forbid(unsafe_code)]

mod deny;
mod header;
mod records;
mod wasm;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["deny"] => deny::check(),
        ["header"] => header::write(),
        ["header", "--check"] => header::check(),
        ["records"] => records::write(),
        ["records", "--check"] => records::check(),
        ["wasm"] => wasm::build(),
        _ => Err("usage: xtask deny | header [--check] | records [--check] | wasm".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the root of the checkout.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}
