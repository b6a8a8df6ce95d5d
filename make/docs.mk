# Code blocks and figures of the documentation, and the demonstration.

FIGURES := $(PYTHON) tests/docs/figures.py
# Stores the reports of a whole benchmark in docs/figures/, and updates the documents. Does nothing
# after a short run or a run of single parts.
KEEP = $(if $(BENCH_SMALL)$(PARTS),,FIGURES_COMMIT=$(FIGURES_COMMIT) $(FIGURES) keep $(1) "$(2)" $(3))
# The commit at the start of the run. Figures are only stored if it has not changed at the end.
FIGURES_COMMIT := $(shell git rev-parse HEAD 2>/dev/null)

figures: ## Update tables and pictures of the documents from docs/figures/
	$(FIGURES) write

figures-check:
	$(FIGURES) check

test-docs: build-c build-python node-ready build-node build-wasm demo-node ## Run the code blocks of the documentation, and the demonstration
	@$(NEED) nc=netcat-openbsd redis-cli=redis-tools curl jq
	$(CARGO) build --quiet --package dthrottled --package dthrottle-cli
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) tests/docs
	$(VENV)/bin/python tests/docs/run.py
	$(VENV)/bin/python demo/demo.py target/demo.json

demo: cargo-ready ## Show three nodes in three languages that limit one client together
	@echo "Building (a few minutes the first time) ..."
	@mkdir -p target
	@$(MAKE) --no-print-directory --quiet build-python build-node demo-node >target/demo-build.log 2>&1 || \
		{ tail -20 target/demo-build.log; exit 1; }
	@$(VENV)/bin/python demo/demo.py

demo-figures: build-python build-node demo-node ## Update the picture of the demonstration, docs/plots/demo.svg
	$(VENV)/bin/python demo/demo.py target/demo.json
	$(call KEEP,demo,make demo-figures,target/demo.json)

.PHONY: demo-figures figures figures-check test-docs demo
