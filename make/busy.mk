# The client's side: real clients against servers that have enough.

test-busy: build-python build-node ## Test busy answers: clients in Python and Node against servers that say 503
	$(VENV_PYTHON) -m pytest --quiet --capture=no --config-file $(PYPROJECT) tests/busy

.PHONY: test-busy
