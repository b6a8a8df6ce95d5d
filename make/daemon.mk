# The daemon dthrottled, and the command dthrottle.

DAEMON := $(RELEASE)/dthrottled

build-daemon: cargo-ready ## Build the daemon: target/release/dthrottled
	$(CARGO) build --quiet --release --package dthrottled

build-cli: cargo-ready ## Build the command: target/release/dthrottle
	$(CARGO) build --quiet --release --package dthrottle-cli

# The tests use the debug build of the daemon, which checks for overflow. The tests of clients mostly
# wait, so three run at a time.
test-daemon: build-python node-ready build-node ## Test the daemon: raw sockets, kills, systemd, clients, Redis clients, Prometheus, page
	@$(NEED) systemd-socket-activate=systemd redis-cli=redis-tools chromium strace setpriv=util-linux prometheus promtool=prometheus
	$(CARGO) test --quiet --package dthrottled
	$(CARGO) build --quiet --package dthrottle-cli
	$(VENV_PYTHON) -m pytest --quiet --config-file $(PYPROJECT) --numprocesses 3 --dist loadfile tests/daemon
	$(NODE_TEST) --test-concurrency=3 tests/daemon/*.test.js

.PHONY: build-daemon build-cli test-daemon

bench-daemon: build-daemon ## Compare the daemon with Redis and an echo server; writes bench/out/daemon.json
	@$(NEED) redis-server taskset=util-linux
	$(CARGO) run --quiet --release --package dthrottle-bench --bin dthrottle-bench-daemon
	$(call KEEP,daemon,make bench-daemon,bench/out/daemon.json)

.PHONY: bench-daemon
