//! The WebAssembly packages, for Node and for the web, from the compiled module.

use std::error::Error;
use std::path::PathBuf;

use wasm_bindgen_cli_support::Bindgen;

const MODULE: &str = "target/wasm32-unknown-unknown/release/dthrottle_wasm.wasm";

/// Writes `bindings-wasm/pkg/node` and `bindings-wasm/pkg/web`.
pub(crate) fn build() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    for target in ["node", "web"] {
        let mut bindgen = Bindgen::new();
        bindgen.input_path(root.join(MODULE)).out_name("native").typescript(true);
        if target == "node" {
            bindgen.nodejs(true)?;
        } else {
            bindgen.web(true)?;
        }
        bindgen.generate(root.join("bindings-wasm/pkg").join(target))?;
    }
    Ok(())
}
