# The documentation's code blocks, and the demonstration.

test-docs: build-c build-python build-node build-wasm ## Run the code blocks of the documentation, and the demonstration
	$(VENV)/bin/python tests/docs/run.py
	demo/run

demo: cargo-ready ## See it throttle, then the same answers in every language
	@$(CARGO) run --quiet --release --package dthrottle --example demo
	@echo "Building the other languages (a few minutes the first time) ..."
	@$(MAKE) --no-print-directory --quiet build >target/demo-build.log 2>&1 || { tail -20 target/demo-build.log; exit 1; }
	@demo/run

.PHONY: test-docs demo
