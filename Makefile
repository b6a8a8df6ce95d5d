# The one front door. `make help` explains every target.
SHELL := /bin/sh
.DEFAULT_GOAL := help
# Two heavy builds side by side only slow each other down.
.NOTPARALLEL:

ifneq ($(words $(CURDIR)),1)
$(error make cannot work in a folder whose path has blanks in it; move the checkout)
endif

# All parts must find what the others built.
export CARGO_TARGET_DIR := $(CURDIR)/target

CARGO ?= cargo
PYTHON ?= python3
NEED := scripts/need

VENV := .venv
RELEASE := target/release

help: ## Explain every target
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST) | sort

build: build-c build-python build-node build-wasm build-daemon build-cli ## Build everything, usable from the checkout

test: lint test-core test-loom test-sim test-c test-python test-node test-wasm test-busy test-processes test-cluster test-web test-web-node test-servers test-daemon test-docs test-bench ## Run everything that CI runs
	@echo "all tests passed"

test-deep: test-crash-deep test-loom-deep test-miri test-servers-deep ## Run what takes longer: a minute of kills, bigger models, undefined behaviour, fuzzing
	@echo "all deep tests passed"

lint: lint-rust lint-python lint-js records-check header-check vectors-check figures-check ## Check style, types, and that what is generated is fresh

clean: ## Remove everything that was built or installed here
	rm -rf target $(VENV) node_modules bindings-wasm/pkg bindings-node/*.node bench/out sim/out

include make/*.mk

.PHONY: help build test test-deep lint clean
