//! Generates include/dthrottle.h from the exports of bindings-c.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use crate::{records, root};

/// Writes the header.
pub(crate) fn write() -> Result<(), Box<dyn Error>> {
    fs::write(header_path(), header()?)?;
    Ok(())
}

/// Returns an error if the committed header is out of date.
pub(crate) fn check() -> Result<(), Box<dyn Error>> {
    if fs::read_to_string(header_path())? == header()? {
        return Ok(());
    }
    Err("include/dthrottle.h is out of date; run `make header` and commit it".into())
}

fn header() -> Result<String, Box<dyn Error>> {
    let crate_dir = root().join("bindings-c");
    let mut config = cbindgen::Config::from_file(crate_dir.join("cbindgen.toml"))?;
    let after = config.after_includes.unwrap_or_default();
    config.after_includes = Some(version() + &after + &records::initialisers());
    let mut text = Vec::new();
    cbindgen::Builder::new().with_crate(crate_dir).with_config(config).generate()?.write(&mut text);
    Ok(in_c_style(&String::from_utf8(text)?))
}

/// Returns the macros of the version. All packages of the workspace have the same version.
fn version() -> String {
    let part = |name: &str, value: &str| format!("#define DTHROTTLE_VERSION_{name} {value}\n");
    let text = concat!("\n#define DTHROTTLE_VERSION \"", env!("CARGO_PKG_VERSION"), "\"\n");
    text.to_string()
        + &part("MAJOR", env!("CARGO_PKG_VERSION_MAJOR"))
        + &part("MINOR", env!("CARGO_PKG_VERSION_MINOR"))
        + &part("PATCH", env!("CARGO_PKG_VERSION_PATCH"))
        + "\n"
}

/// Changes the style of cbindgen: puts short comments on one line, and negative numbers in
/// parentheses.
fn in_c_style(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut rest = lines.as_slice();
    let mut out = String::new();
    while let [line, ..] = rest {
        let mut read = 1;
        if let [open, words, close, ..] = rest
            && (open.trim(), close.trim()) == ("/**", "*/")
            && words.len() <= 93
        {
            let indent = open.trim_end_matches("/**");
            out += &format!("{indent}/** {} */", words.trim().trim_start_matches("* "));
            read = 3;
        } else if let Some((define, number)) = line.rsplit_once(' ')
            && define.starts_with("#define ")
            && number.starts_with('-')
        {
            out += &format!("{define} ({number})");
        } else {
            out += line;
        }
        out += "\n";
        rest = &rest[read..];
    }
    out
}

fn header_path() -> PathBuf {
    root().join("include/dthrottle.h")
}
