//! Builds the WebAssembly package, for Node and for the web, from the compiled module and the
//! JavaScript sources. Copies the public classes of bindings-node. For the web, converts CommonJS
//! to ES modules.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use wasm_bindgen_cli_support::Bindgen;

const MODULE: &str = "target/wasm32-unknown-unknown/wasm/dthrottle_wasm.wasm";

/// Files to copy: paths relative to the root, and names in the package.
type Copies = &'static [(&'static str, &'static str)];

/// Files for both hosts. The JavaScript files are CommonJS.
const COMMON: Copies = &[
    ("bindings-node/api/busy.js", "api/busy.js"),
    ("bindings-node/api/clocks.js", "api/clocks.js"),
    ("bindings-node/api/encode_config.js", "api/encode_config.js"),
    ("bindings-node/api/errors.js", "api/errors.js"),
    ("bindings-node/api/index.js", "api/index.js"),
    ("bindings-node/api/middleware.js", "api/middleware.js"),
    ("bindings-node/api/records.js", "api/records.js"),
    ("bindings-node/api/values.js", "api/values.js"),
    ("bindings-node/index.d.ts", "types.d.ts"),
    ("bindings-node/surface.d.ts", "surface.d.ts"),
    ("bindings-wasm/js/adapt.js", "adapt.js"),
    ("bindings-wasm/js/link.js", "link.js"),
    ("bindings-wasm/js/links.d.ts", "links.d.ts"),
];

const NODE: Copies = &[
    ("bindings-wasm/js/node.d.ts", "index.d.ts"),
    ("bindings-wasm/js/node.js", "index.js"),
    ("bindings-wasm/js/node.mjs", "index.mjs"),
    ("bindings-wasm/js/node.d.mts", "index.d.mts"),
];

const WEB: Copies = &[
    ("bindings-wasm/js/web.d.ts", "index.d.ts"),
    ("bindings-wasm/js/web.js", "index.js"),
    ("bindings-wasm/js/web.json", "package.json"),
];

const PACKAGE: Copies = &[
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("bindings-wasm/js/package.json", "package.json"),
];

/// Writes the package `bindings-wasm/pkg`.
pub(crate) fn build() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let package = root.join("bindings-wasm/pkg");
    if package.exists() {
        fs::remove_dir_all(&package)?;
    }
    let node = package.join("node");
    bindgen(&root).nodejs(true)?.generate(&node)?;
    embed_module(&node)?;
    copy(&root, COMMON, &node, Ok)?;
    copy(&root, NODE, &node, Ok)?;

    let web = package.join("web");
    bindgen(&root).web(true)?.generate(&web)?;
    copy(&root, COMMON, &web, es_module)?;
    copy(&root, WEB, &web, Ok)?;
    copy(&root, PACKAGE, &package, Ok)?;

    let size = fs::metadata(web.join("dthrottle_bg.wasm"))?.len();
    println!("bindings-wasm/pkg: dthrottle_bg.wasm has {size} bytes");
    Ok(())
}

fn bindgen(root: &Path) -> Bindgen {
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(root.join(MODULE))
        .out_name("dthrottle")
        .typescript(true)
        .omit_default_module_path(false)
        .remove_name_section(true)
        .remove_producers_section(true);
    bindgen
}

/// Embeds the compiled module in a script, so that bundlers for Node need no loader for it, and
/// bundles read no further file.
fn embed_module(node: &Path) -> Result<(), Box<dyn Error>> {
    const READ: &str = "const wasmPath = `${__dirname}/dthrottle_bg.wasm`;
const wasmBytes = require('fs').readFileSync(wasmPath);";
    let glue = node.join("dthrottle.js");
    let text = fs::read_to_string(&glue)?;
    if !text.contains(READ) {
        return Err(
            "dthrottle.js of wasm-bindgen must contain the lines that read the module; update READ"
                .into(),
        );
    }
    fs::write(&glue, text.replace(READ, "const { wasmBytes } = require('./module.js');"))?;
    let file = node.join("dthrottle_bg.wasm");
    let module = to_base64(&fs::read(&file)?);
    fs::remove_file(&file)?;
    let script = format!(
        "// The compiled module.\n'use strict';\n\n\
         exports.wasmBytes = Buffer.from('{module}', 'base64');\n"
    );
    Ok(fs::write(node.join("module.js"), script)?)
}

fn to_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let word = part.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - part.len()));
        let digit = |i: usize| char::from(DIGITS[(word >> (18 - 6 * i)) as usize & 63]);
        text.extend((0..=part.len()).map(digit));
    }
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

fn copy(
    root: &Path,
    files: Copies,
    to: &Path,
    convert: fn(String) -> Result<String, String>,
) -> Result<(), Box<dyn Error>> {
    for (from, name) in files {
        let text = fs::read_to_string(root.join(from)).map_err(|e| format!("{from}: {e}"))?;
        let is_script = name.ends_with(".js");
        let text =
            if is_script { convert(text).map_err(|e| format!("{from}: {e}"))? } else { text };
        let path = to.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}

/// Converts a CommonJS module to an ES module. Supports only the statements that these modules use,
/// each on its own line, and returns an error for others.
fn es_module(text: String) -> Result<String, String> {
    let lines = text.lines().filter(|line| *line != "'use strict';").map(es_line);
    Ok(lines.collect::<Result<Vec<_>, _>>()?.join("\n") + "\n")
}

fn es_line(line: &str) -> Result<String, String> {
    let plain = |names: &str| !names.contains([':', '{', '}', '=', '(', '\'']);
    if let Some(names) = line.strip_prefix("module.exports = {").and_then(|l| l.strip_suffix("};"))
        && plain(names)
    {
        return Ok(format!("export {{{names}}};"));
    }
    if let Some(rest) = line.strip_prefix("const {")
        && let Some((names, path)) = rest.split_once("} = require('./")
        && let Some(path) = path.strip_suffix("');")
        && plain(names)
        && plain(path)
    {
        return Ok(format!("import {{{names}}} from './{path}';"));
    }
    let words = ["require(", "module.exports", "exports.", "__dirname", "__filename"];
    if !line.trim_start().starts_with(['/', '*']) && words.iter().any(|word| line.contains(word)) {
        return Err(format!("cannot make an ES module of: {line}"));
    }
    Ok(line.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_base64_pads_to_groups_of_four_digits() {
        let texts = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, text) in texts.iter().enumerate() {
            assert_eq!(to_base64(&b"foobar"[..length]), *text);
        }
        assert_eq!(to_base64(&[0xff, 0xfe, 0xfd]), "//79");
    }

    #[test]
    fn es_line_converts_known_lines_and_refuses_others() {
        let turned = [
            ("const { a, b } = require('./x.js');", "import { a, b } from './x.js';"),
            ("module.exports = { a, b };", "export { a, b };"),
            ("  // exports.a is only spoken of", "  // exports.a is only spoken of"),
        ];
        for (line, expected) in turned {
            assert_eq!(es_line(line).as_deref(), Ok(expected));
        }
        for line in [
            "const { a: b } = require('./x.js');",
            "const x = require('./x.js');",
            "const { a } = require('./x.js'), { b } = require('./y.js');",
            "const { a } = require('node:fs');",
            "module.exports = { a, b: c };",
            "exports.f = f;",
            "const here = __dirname;",
        ] {
            assert!(es_line(line).is_err(), "{line}");
        }
    }
}
