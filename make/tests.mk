# Tests of several languages and real servers together.

test-processes: build-c build-python build-node ## Test one table with many processes: mixed languages, gunicorn, node:cluster
	@$(NEED) gcc
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) tests/processes

# The tests mostly wait, so three run at a time.
test-web: build-python ## Test the middleware of Python in real servers: gunicorn, uvicorn, uWSGI
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) --numprocesses 3 tests/web

test-servers: build-python node-ready build-node build-nginx build-apache ## Test the modules in real servers: nginx, Apache
	@$(NEED) ip=iproute2
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) --numprocesses 3 --dist loadfile tests/servers

test-web-node: build-python node-ready build-node ## Test the middleware of Node in real servers with workers, together with Python
	$(NODE_TEST) --test-concurrency=3 tests/web-node/*.test.js

test-servers-deep: build-python build-nginx build-apache
	@$(NEED) valgrind wrk
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) tests/servers/deep.py

# The node in C for the tests and the demonstration.
demo-node: build-c
	@$(NEED) gcc
	gcc -O2 -Wall -Wextra -Werror -Iinclude tests/cluster/hammer.c -o target/hammer \
		-L$(RELEASE) -ldthrottle -Wl,-rpath,$(CURDIR)/$(RELEASE)

test-cluster: build-python build-node demo-node ## Test nodes of all languages in network namespaces, as root: loss, partitions, kills, attacks
	@$(NEED) ip=iproute2 nft=nftables
	$(CARGO) build --quiet --release --package dthrottle --example node
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) tests/cluster

.PHONY: test-processes test-web test-web-node test-servers test-servers-deep demo-node test-cluster
