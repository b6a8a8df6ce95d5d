//! How the shared library is linked: its name for the loader, and that it is never unloaded.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let major = env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    let arguments = match os.as_str() {
        "macos" => vec![format!("-Wl,-install_name,@rpath/libdthrottle.{major}.dylib")],
        // A host that unloads its modules, as Apache does when it reads its configuration again,
        // must not take the code away from threads that still run it.
        "linux" => {
            vec![format!("-Wl,-soname,libdthrottle.so.{major}"), "-Wl,-z,nodelete".to_string()]
        }
        _ => Vec::new(),
    };
    for argument in arguments {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
}
