//! Link flags for a Node addon.

fn main() {
    napi_build::setup();
    // Prevents Node from unloading the addon with its last thread, because the thread that
    // exchanges with a cluster may run a little longer.
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
