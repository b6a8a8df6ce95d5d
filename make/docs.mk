# The documentation's code blocks and figures, and the demonstration.

FIGURES := $(PYTHON) tests/docs/figures.py
# Keeps the reports of a whole benchmark in docs/figures/, and writes the documents that show them.
# Not the small form, and no single parts.
KEEP = $(if $(BENCH_SMALL)$(PARTS),,FIGURES_COMMIT=$(FIGURES_COMMIT) $(FIGURES) keep $(1) "$(2)" $(3))
# The commit when the run begins: figures are kept only if it is still the same when it ends.
FIGURES_COMMIT := $(shell git rev-parse HEAD 2>/dev/null)

figures: ## Write the tables of the documents anew from docs/figures/
	$(FIGURES) write

figures-check:
	$(FIGURES) check

test-docs: build-c build-python node-ready build-node build-wasm demo-node ## Run the code blocks of the documentation, and the demonstration
	@$(NEED) nc=netcat-openbsd redis-cli=redis-tools curl jq
	$(CARGO) build --quiet --package dthrottled --package dthrottle-cli
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) tests/docs
	$(VENV)/bin/python tests/docs/run.py
	$(VENV)/bin/python demo/demo.py target/demo.json

demo: cargo-ready ## See three nodes in three languages hold one client to one limit
	@echo "Building (a few minutes the first time) ..."
	@mkdir -p target
	@$(MAKE) --no-print-directory --quiet build-python build-node demo-node >target/demo-build.log 2>&1 || \
		{ tail -20 target/demo-build.log; exit 1; }
	@$(VENV)/bin/python demo/demo.py

demo-figures: build-python build-node demo-node ## Draw the picture of the demonstration again: docs/plots/demo.svg
	$(VENV)/bin/python demo/demo.py target/demo.json
	$(call KEEP,demo,make demo-figures,target/demo.json)

.PHONY: demo-figures figures figures-check test-docs demo
