# The client's side: real clients against servers that have enough.

test-busy: build-python build-node ## Test busy answers: clients in Python and Node against servers that say 503
	$(VENV_PYTHON) -m pytest --quiet --capture=no --config-file $(PYPROJECT) tests/busy

# In virtual time: the same figures on every machine.
busy-figures: cargo-ready ## Write docs/figures/busy.json and the table of docs/busy.md anew
	$(CARGO) test --quiet --package dthrottle --test busy -- --ignored all_rows_are_written
	$(call KEEP,busy,make busy-figures,target/bench/busy.json)

.PHONY: test-busy busy-figures
