//! dthrottle for wasm.
