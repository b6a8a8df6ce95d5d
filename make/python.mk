# The Python package: its build in .venv, its tests, and the style of all Python code.

PYTHON_DIR := bindings-python
VENV_PYTHON := $(VENV)/bin/python
VENV_READY := $(VENV)/.ready
WHEELS := target/wheels
PYPROJECT := $(PYTHON_DIR)/pyproject.toml
RUFF := RUFF_CACHE_DIR=target/ruff $(VENV)/bin/ruff
MYPY := $(VENV_PYTHON) -m mypy --config-file $(PYPROJECT)
# Folders have modules with the same names, so mypy checks one folder at a time.
PYTHON_TESTS = $(sort $(dir $(shell find tests -name '*.py')))

# Python of Debian lacks venv and pip; `need` installs the package that has them, or names it.
$(VENV_READY): $(PYTHON_DIR)/requirements-dev.txt
	@$(NEED) $(PYTHON)=python3
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "missing: Python 3.10 or later; choose one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || $(NEED) ensurepip=python3-venv
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --requirement $<
	$(VENV_PYTHON) -m pip check --quiet
	@touch $@

venv: $(VENV_READY)

build-python: cargo-ready venv ## Build the Python package and install it into .venv
	@rm -f $(WHEELS)/dthrottle-*.whl
	$(VENV)/bin/maturin build --quiet --release --locked --manifest-path $(PYTHON_DIR)/Cargo.toml \
		--interpreter $(VENV_PYTHON) --out $(WHEELS)
	$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
		--force-reinstall $(WHEELS)/dthrottle-*.whl

test-python: build-python ## Test the Python package: vectors, API, threads, fork, wheel, README
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) $(PYTHON_DIR)/tests

BENCH_VENV := target/bench/venv
BENCH_PYTHON := $(BENCH_VENV)/bin/python

$(BENCH_VENV)/.ready: bench/python/requirements.txt $(VENV_READY)
	$(PYTHON) -m venv --clear $(BENCH_VENV)
	$(BENCH_PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --requirement $<
	$(BENCH_PYTHON) -m pip check --quiet
	@touch $@

# PARTS=calls measures only this part; see bench/python/main.py.
bench-python: build-python $(BENCH_VENV)/.ready ## Compare with limits and Flask-Limiter; writes bench/out/python.json
	@$(NEED) redis-server valgrind
	$(BENCH_PYTHON) -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
		--force-reinstall $(WHEELS)/dthrottle-*.whl
	$(BENCH_PYTHON) bench/python/main.py $(PARTS)
	$(call KEEP,python,make bench-python,bench/out/python.json)

# The checks that need no build.
style-python: venv
	$(RUFF) check --quiet --config $(PYPROJECT) $(PYTHON_DIR) tests demo bench scripts
	$(RUFF) format --quiet --check --config $(PYPROJECT) $(PYTHON_DIR) tests demo bench scripts
	$(MYPY) $(PYTHON_DIR)/python $(PYTHON_DIR)/tests

lint-python: build-python style-python
	$(MYPY) --disable-error-code import-not-found bench/python/*.py
	@for dir in demo/ bench/ bench/servers/ scripts/ $(PYTHON_TESTS); do echo "mypy $$dir"; $(MYPY) $$dir*.py || exit 1; done
	$(VENV_PYTHON) -m mypy.stubtest --mypy-config-file $(PYPROJECT) dthrottle._dthrottle

.PHONY: venv build-python test-python bench-python style-python lint-python
