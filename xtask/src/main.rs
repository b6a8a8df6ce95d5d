//! Build steps that are more than a command: `cargo run -p xtask -- deny | header | wasm`.
#![forbid(unsafe_code)]

mod deny;
mod header;
mod wasm;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["deny"] => deny::check(),
        ["header"] => header::write(),
        ["header", "--check"] => header::check(),
        ["wasm"] => wasm::build(),
        _ => Err("usage: xtask deny | header [--check] | wasm".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
