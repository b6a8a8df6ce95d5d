//! Sets the soname of the shared library, and that it is never unloaded.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let major = env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    let arguments = match os.as_str() {
        "macos" => vec![format!("-Wl,-install_name,@rpath/libdthrottle.{major}.dylib")],
        // Apache unloads its modules on a reload. The code must stay in memory, because threads of
        // the library may still run it.
        "linux" => {
            vec![format!("-Wl,-soname,libdthrottle.so.{major}"), "-Wl,-z,nodelete".to_string()]
        }
        _ => Vec::new(),
    };
    for argument in arguments {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
}
