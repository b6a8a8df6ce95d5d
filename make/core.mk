# The Rust workspace.

WASM_TARGET := wasm32-unknown-unknown
WASM_STD = $(shell rustc --print target-libdir --target $(WASM_TARGET))

ARM_TARGET := aarch64-unknown-linux-gnu
ARM_STD = $(shell rustc --print target-libdir --target $(ARM_TARGET))

# Miri is only in nightly Rust.
NIGHTLY ?= nightly
# How often a thread is interrupted in the deep run of the loom models; 3 in test-loom.
PREEMPTIONS ?= 4

cargo-ready:
	@command -v $(CARGO) >/dev/null || { echo "missing: cargo; install Rust 1.95 or later with rustup" >&2; exit 1; }
	@$(NEED) cc=gcc

wasm-ready: cargo-ready
	@test -d "$(WASM_STD)" || rustup target add $(WASM_TARGET) || \
		{ echo "missing: Rust's standard library for $(WASM_TARGET); install it with rustup" >&2; exit 1; }

# The code for ARM is only compiled, because its 128-bit compare-and-swap differs.
arm-ready: cargo-ready
	@test -d "$(ARM_STD)" || rustup target add $(ARM_TARGET) || \
		{ echo "missing: Rust's standard library for $(ARM_TARGET); install it with rustup" >&2; exit 1; }

# The tests use all features. check-features compiles the core with each feature alone.
FEATURE_SETS := none shared cluster config web busy serde

check-features: cargo-ready wasm-ready ## Compile the core with each of its features alone, and for wasm32; the daemon without Smockron
	@for set in $(FEATURE_SETS); do \
		echo "cargo clippy --features $$set"; \
		$(CARGO) clippy --quiet --package dthrottle --no-default-features --features "$${set#none}" -- -D warnings || exit 1; \
	done
	$(CARGO) check --quiet --package dthrottle --no-default-features --target $(WASM_TARGET)
	$(CARGO) check --quiet --package dthrottle --no-default-features --features cluster,config,web,busy --target $(WASM_TARGET)
	$(CARGO) clippy --quiet --package dthrottled --no-default-features -- -D warnings

test-core: check-features arm-ready ## Test the core and the command line: units, laws, vectors, processes, kills
	@$(NEED) strace
	$(CARGO) test --quiet --package dthrottle --package dthrottle-cli
	$(CARGO) check --quiet --package dthrottle --all-features --target $(ARM_TARGET)

test-crash-deep: cargo-ready
	@$(NEED) strace
	DTHROTTLE_DEEP=1 $(CARGO) test --quiet --package dthrottle

test-loom: cargo-ready ## Test the table's protocol under all interleavings of threads
	$(CARGO) test --quiet --package dthrottle-loom

test-loom-deep: cargo-ready
	LOOM_MAX_PREEMPTIONS=$(PREEMPTIONS) $(CARGO) test --quiet --package dthrottle-loom

miri-ready: cargo-ready
	@$(CARGO) +$(NIGHTLY) miri --version >/dev/null 2>&1 || \
		rustup toolchain install $(NIGHTLY) --profile minimal --component miri --component rust-src || \
		{ echo "missing: Miri; install it with rustup, as components miri and rust-src of $(NIGHTLY)" >&2; exit 1; }

# Stacked borrows are only checked in a part, because they take minutes where the rules are read.
test-miri: miri-ready ## Check the table for undefined behaviour with Miri
	MIRIFLAGS=-Zmiri-disable-stacked-borrows \
		$(CARGO) +$(NIGHTLY) miri test --quiet --package dthrottle --lib table::
	$(CARGO) +$(NIGHTLY) miri test --quiet --package dthrottle --lib table::tests::pending::e

vectors-check:
	$(PYTHON) tests/vectors/make.py --check

# PARTS=single_thread measures only this part; see bench/src/main.rs.
bench: build-c build-python build-node ## Compare with governor, and measure the bindings; writes bench/out/
	@mkdir -p target/bench
	$(CC) -O2 -Iinclude bench/c_hot.c -o target/bench/c_hot -L$(RELEASE) -ldthrottle -Wl,-rpath,$(CURDIR)/$(RELEASE)
	$(CARGO) run --quiet --release --package dthrottle-bench --bin dthrottle-bench -- $(PARTS)
	$(call KEEP,core,make bench,bench/out/core.json bench/out/cluster.json)

records: cargo-ready ## Generate files from the core's lists of records, errors and keys
	$(CARGO) run --quiet --package xtask -- records

records-check: cargo-ready
	$(CARGO) run --quiet --package xtask -- records --check

lint-deps: cargo-ready
	$(CARGO) run --quiet --package xtask -- deny

lint-rust: cargo-ready wasm-ready lint-deps
	$(CARGO) fmt --all --check
	$(CARGO) clippy --quiet --workspace --exclude dthrottle-wasm --all-targets -- -D warnings
	$(CARGO) clippy --quiet --package dthrottle-wasm --target $(WASM_TARGET) -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --package dthrottle --no-deps --all-features

.PHONY: cargo-ready wasm-ready arm-ready miri-ready check-features test-core test-loom test-loom-deep test-miri test-crash-deep \
	vectors-check bench lint-deps lint-rust records records-check
