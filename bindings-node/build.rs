//! Link flags for a Node addon.

fn main() {
    napi_build::setup();
    // Node unloads an addon when the last thread with it ends. The thread that exchanges with a
    // cluster may take a little longer, and needs its code until then.
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
