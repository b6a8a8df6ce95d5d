# Coverage-guided fuzzing of the wire format. `make test-core` runs the same checks on stable Rust.

# The time of each target, and the targets.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= datagram engine

fuzz-ready: cargo-ready
	@rustc +$(NIGHTLY) --version >/dev/null 2>&1 || rustup toolchain install $(NIGHTLY) --profile minimal || \
		{ echo "missing: nightly Rust; install it with rustup" >&2; exit 1; }
	@command -v cargo-fuzz >/dev/null || $(CARGO) install --quiet --locked cargo-fuzz || \
		{ echo "missing: cargo-fuzz; install it with cargo" >&2; exit 1; }
	@$(NEED) c++=g++

# Failing inputs are kept in fuzz/artifacts/, and the corpus in fuzz/corpus/.
fuzz: fuzz-ready ## Feed hostile bytes to the wire format for a minute (FUZZ_SECONDS=3600: an hour)
	$(PYTHON) tests/vectors/seeds.py fuzz/corpus/datagram
	for target in $(FUZZ_TARGETS); do \
		$(CARGO) +$(NIGHTLY) fuzz run --target-dir target/fuzz $$target -- \
			-max_total_time=$(FUZZ_SECONDS) -max_len=8000 -print_final_stats=1 || exit 1; \
	done

test-deep: fuzz

.PHONY: fuzz-ready fuzz
