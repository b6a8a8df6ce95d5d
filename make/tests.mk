# What several languages and real servers do together.

test-processes: build-c build-python build-node ## Test one table for many processes: languages mixed, gunicorn, node:cluster
	@$(NEED) gcc
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) tests/processes

test-web: build-python ## Test the middleware of Python in real servers: gunicorn, uvicorn, uWSGI
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) tests/web

.PHONY: test-processes test-web
