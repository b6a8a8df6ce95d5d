# Quick checks during development. They use debug builds in target/check, so the packages of
# `make build-...` do not change.

CHECK := target/check
CHECK_PYTHON := $(CHECK)/python/dthrottle
CHECK_NODE := $(CHECK)/bindings-node

check: lint-rust lint-js style-python header-check vectors-check figures-check check-vectors ## Check in three minutes: style, types, unit tests of the core, vectors in Rust, C, Python and Node
	$(CARGO) test --quiet --package dthrottle --lib --test vectors --test features
	@echo "all checks passed; make test runs the rest"

check-build: cargo-ready node-there
	$(CARGO) build --quiet --package dthrottle-c --package dthrottle-python --package dthrottle-node
	@mkdir -p $(CHECK_PYTHON) $(CHECK_NODE)
	@cp -r $(PYTHON_DIR)/python/dthrottle/. $(CHECK_PYTHON)
	@cp target/debug/lib_dthrottle.so $(CHECK_PYTHON)/_dthrottle.abi3.so
	@cp -r $(filter-out %.node,$(wildcard $(NODE_DIR)/*)) $(CHECK_NODE)
	@cp target/debug/libdthrottle_node.so $(CHECK)/$(NODE_ADDON)
	@ln -sfn ../../tests $(CHECK)/tests
	@ln -sfn ../debug/libdthrottle.so $(CHECK)/$(C_SONAME)

check-vectors: check-build venv node-ready
	@$(NEED) gcc /usr/include/cjson/cJSON.h=libcjson-dev
	@for test in vectors_calls vectors_config; do \
		gcc -std=c11 -Iinclude bindings-c/tests/$$test.c -o $(CHECK)/$$test -Ltarget/debug -ldthrottle \
			-Wl,-rpath,$(CURDIR)/$(CHECK) -lcjson -lm && $(CHECK)/$$test tests/vectors || exit 1; \
	done
	PYTHONPATH=$(CHECK)/python $(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) \
		$(addprefix $(PYTHON_DIR)/tests/test_,sequences.py configs.py)
	$(NODE_TEST) $(CHECK_NODE)/test/vectors.test.js

lines: ## Count the lines of shipped code in each part; COMMIT=... counts a commit
	@$(PYTHON) scripts/lines.py $(COMMIT)

.PHONY: check check-build check-vectors lines
