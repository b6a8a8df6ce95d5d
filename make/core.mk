# The Rust workspace.

WASM_TARGET := wasm32-unknown-unknown
WASM_STD = $(shell rustc --print target-libdir --target $(WASM_TARGET))

cargo-ready:
	@command -v $(CARGO) >/dev/null || { echo "missing: cargo; install Rust 1.95 or later with rustup" >&2; exit 1; }
	@$(NEED) cc=gcc

wasm-ready: cargo-ready
	@test -d "$(WASM_STD)" || rustup target add $(WASM_TARGET) || \
		{ echo "missing: Rust's standard library for $(WASM_TARGET); install it with rustup" >&2; exit 1; }

test-core: cargo-ready wasm-ready ## Test the core: units, laws, vectors, and that it needs no operating system
	$(CARGO) test --quiet --package dthrottle
	$(CARGO) build --quiet --package dthrottle --no-default-features --target $(WASM_TARGET)

vectors-check:
	$(PYTHON) tests/vectors/make.py --check

bench: cargo-ready ## Measure against what users would pick instead; writes bench/out/
	$(CARGO) run --quiet --release --package dthrottle-bench

lint-rust: cargo-ready wasm-ready
	$(CARGO) fmt --all --check
	$(CARGO) clippy --quiet --workspace --exclude dthrottle-wasm --all-targets -- -D warnings
	$(CARGO) clippy --quiet --package dthrottle-wasm --target $(WASM_TARGET) -- -D warnings

.PHONY: cargo-ready wasm-ready test-core vectors-check bench lint-rust
