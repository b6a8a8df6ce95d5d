# Clients of busy services.

test-busy: build-python build-node ## Test busy throttles: clients in Python and Node against servers that answer 503
	$(VENV_PYTHON) -m pytest --quiet --capture=no --config-file $(PYPROJECT) tests/busy

# The simulation runs in virtual time, so the figures are the same on every machine.
busy-figures: cargo-ready ## Update docs/figures/busy.json and the table in docs/busy.md
	$(CARGO) test --quiet --package dthrottle --test busy -- --ignored all_rows_are_written
	$(call KEEP,busy,make busy-figures,target/bench/busy.json)

.PHONY: test-busy busy-figures
