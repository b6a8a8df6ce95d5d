# What several languages and real servers do together.

test-processes: build-c build-python build-node ## Test one table for many processes: languages mixed, gunicorn, node:cluster
	@$(NEED) gcc
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) tests/processes

# They mostly wait: three at a time.
test-web: build-python ## Test the middleware of Python in real servers: gunicorn, uvicorn, uWSGI
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) --numprocesses 3 tests/web

test-servers: build-python node-ready build-node build-nginx build-apache ## Test the modules in real servers: nginx, Apache
	@$(NEED) ip=iproute2
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) --numprocesses 3 --dist loadfile tests/servers

test-web-node: build-python node-ready build-node ## Test the middleware of Node in clusters of real servers, with Python beside them
	$(NODE_TEST) --test-concurrency=3 tests/web-node/*.test.js

test-servers-deep: build-python build-nginx build-apache
	@$(NEED) valgrind wrk
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) tests/servers/deep.py

# The node in C that tests and demonstration start beside those in Python and JavaScript.
demo-node: build-c
	@$(NEED) gcc
	gcc -O2 -Wall -Wextra -Werror -Iinclude tests/cluster/hammer.c -o target/hammer \
		-L$(RELEASE) -ldthrottle -Wl,-rpath,$(CURDIR)/$(RELEASE)

test-cluster: build-python build-node demo-node ## Test nodes of all languages on hosts of their own, as root: loss, partitions, kills, attacks
	@$(NEED) ip=iproute2 nft=nftables
	$(CARGO) build --quiet --release --package dthrottle --example node
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) tests/cluster

.PHONY: test-processes test-web test-web-node test-servers test-servers-deep demo-node test-cluster
