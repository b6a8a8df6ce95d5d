# All commands of the project. `make help` lists the targets.
SHELL := /bin/sh
.DEFAULT_GOAL := help
# Parallel builds would compete for the same cores and the same target directory.
.NOTPARALLEL:

ifneq ($(words $(CURDIR)),1)
$(error make needs a path without blanks; move the checkout)
endif

# All parts use the same build directory.
export CARGO_TARGET_DIR := $(CURDIR)/target

CARGO ?= cargo
PYTHON ?= python3
NEED := scripts/need

VENV := .venv
RELEASE := target/release

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST) | sort

build: build-c build-python build-node build-wasm build-daemon build-cli ## Build everything; usable from the checkout

test: lint test-core test-loom test-sim test-c test-python test-node test-wasm test-busy test-processes test-cluster test-web test-web-node test-servers test-daemon test-docs test-bench ## Run everything that CI runs
	@echo "all tests passed"

test-deep: test-crash-deep test-loom-deep test-miri test-servers-deep ## Run the longer tests: a minute of kills, larger models, Miri, fuzzing
	@echo "all deep tests passed"

lint: lint-rust lint-python lint-js records-check header-check vectors-check figures-check ## Check style, types, and that generated files are up to date

clean: ## Remove everything that was built or installed in the checkout
	rm -rf target $(VENV) node_modules bindings-wasm/pkg bindings-node/*.node bench/out sim/out

include make/*.mk

.PHONY: help build test test-deep lint clean
