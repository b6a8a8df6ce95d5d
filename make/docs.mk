# The documentation's code blocks, and the demonstration.

test-docs: build-c build-python node-ready build-node build-wasm demo-node ## Run the code blocks of the documentation, and the demonstration
	@$(NEED) nc=netcat-openbsd redis-cli=redis-tools curl jq
	$(CARGO) build --quiet --package dthrottled --package dthrottle-cli
	$(VENV)/bin/python tests/docs/run.py
	$(VENV)/bin/python demo/demo.py

demo: cargo-ready ## See three nodes in three languages hold one client to one limit
	@echo "Building (a few minutes the first time) ..."
	@mkdir -p target
	@$(MAKE) --no-print-directory --quiet build-python build-node demo-node >target/demo-build.log 2>&1 || \
		{ tail -20 target/demo-build.log; exit 1; }
	@$(VENV)/bin/python demo/demo.py

.PHONY: test-docs demo
