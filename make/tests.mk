# What several languages and real servers do together.

test-processes: build-c build-python build-node ## Test one table for many processes: languages mixed, gunicorn, node:cluster
	@$(NEED) gcc
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) tests/processes

# The nodes in Rust and C that tests and demonstration start beside those in Python and JavaScript.
cluster-nodes: build-c
	@$(NEED) gcc
	$(CARGO) build --quiet --release --package dthrottle --example node
	$(CC) -O2 -Wall -Wextra -Werror -Iinclude tests/cluster/hammer.c -o target/hammer \
		-L$(RELEASE) -ldthrottle -Wl,-rpath,$(CURDIR)/$(RELEASE)

test-cluster: build-python build-node cluster-nodes ## Test nodes of all languages on hosts of their own, as root: loss, partitions, kills, attacks
	@$(NEED) ip=iproute2 nft=nftables
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) tests/cluster

.PHONY: test-processes cluster-nodes test-cluster
