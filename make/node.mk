# The Node package in bindings-node: its build and tests, and the style and types of all JavaScript.

NODE_DIR := bindings-node
NODE_TOOLS := node_modules/.ready
NODE_TEST := node --test --test-reporter=./$(NODE_DIR)/test/shared/quiet.mjs
TSC := node_modules/.bin/tsc
# The file name that native.js loads, such as dthrottle.linux-x64.node.
NODE_ADDON = $(NODE_DIR)/dthrottle.$(shell node -p 'process.platform + "-" + process.arch').node

node-there:
	@node -e 'process.exit(Number(process.versions.node.split(".")[0] < 20))' 2>/dev/null && command -v npm >/dev/null || \
		{ echo "missing: Node 20 or later, with npm" >&2; exit 1; }

$(NODE_TOOLS): package.json package-lock.json | node-there
	npm ci --no-audit --no-fund --loglevel=error
	@touch $@

node-ready: node-there $(NODE_TOOLS)

# `install` replaces the file, so running programs keep the old one.
build-node: cargo-ready node-there ## Build the Node package: require('./bindings-node')
	$(CARGO) build --quiet --release --package dthrottle-node
	@install -m 755 $(RELEASE)/libdthrottle_node.so $(NODE_ADDON)

test-node: node-ready build-node ## Test the Node package: vectors, classes, workers, memory, panics, npm, README
	$(CARGO) build --quiet --package dthrottle-node
	@install -m 755 target/debug/libdthrottle_node.so target/debug/dthrottle.node
	$(NODE_TEST) $(NODE_DIR)/test/*.test.js

# test-wasm checks the types of the WebAssembly package, because that needs a build.
lint-js: node-ready ## Check style and types of all JavaScript
	node_modules/.bin/eslint .
	$(TSC) --project tsconfig.json
	$(TSC) --project tsconfig.bundler.json
	@! grep -n '"resolved"' package-lock.json bench/node/package-lock.json || { echo "package-lock.json must not have the addresses of a registry" >&2; exit 1; }

NODE_BENCH := target/bench/node

# The other limiters of the benchmark are installed in target/, apart from the tools.
$(NODE_BENCH)/.ready: bench/node/package.json bench/node/package-lock.json | node-there
	@mkdir -p $(NODE_BENCH)
	@cp bench/node/package.json bench/node/package-lock.json $(NODE_BENCH)
	npm ci --prefix $(NODE_BENCH) --no-audit --no-fund --loglevel=error
	@touch $@

bench-node: build-node $(NODE_BENCH)/.ready ## Compare with express-rate-limit and rate-limiter-flexible; writes bench/out/node.json
	@$(NEED) redis-server taskset=util-linux
	node bench/node/main.js
	$(call KEEP,node,make bench-node,bench/out/node.json)

.PHONY: bench-node node-there node-ready build-node test-node lint-js
