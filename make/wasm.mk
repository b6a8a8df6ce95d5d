# The WebAssembly package in bindings-wasm/pkg, and its tests.

WASM_DIR := bindings-wasm

build-wasm: wasm-ready node-there ## Build the WebAssembly package: bindings-wasm/pkg
	$(CARGO) build --quiet --profile wasm --package dthrottle-wasm --target $(WASM_TARGET)
	$(CARGO) run --quiet --package xtask -- wasm
	node scripts/pack-docs.js $(WASM_DIR)/README.md $(WASM_DIR)/pkg busy cluster configuration semantics table

# One of the tests needs a native node.
test-wasm: node-ready build-node build-wasm ## Test the WebAssembly package, for Node, for the web and in Chromium
	@$(NEED) chromium
	$(CARGO) test --quiet --package xtask
	$(TSC) --project tsconfig.wasm.json
	$(NODE_TEST) $(WASM_DIR)/test/*.test.mjs

.PHONY: build-wasm test-wasm
