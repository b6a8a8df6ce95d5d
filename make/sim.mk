# Simulation of whole clusters in virtual time.

SIM := $(CARGO) run --quiet --profile sim --package dthrottle-sim --
# The number of scenarios of a soak, and the first seed.
SEEDS ?= 10000
SEED ?= 0

sim: cargo-ready ## Simulate clusters of 2 to 1,000 nodes; writes docs/figures/simulation.json, docs/plots/, docs/simulation.md
	$(SIM) run
	$(call KEEP,simulation,make sim,sim/out/summary.json sim/out/series.json)
	$(SIM) plots

test-sim: cargo-ready ## Test the exchange in hundreds of simulated clusters
	$(CARGO) test --quiet --profile sim --package dthrottle-sim --package dthrottle-plot

sim-soak: cargo-ready ## Simulate ten thousand random clusters; SEEDS=10000 SEED=0 are the defaults
	$(SIM) soak $(SEEDS) $(SEED)

sim-one: cargo-ready ## Show one random cluster in detail; SEED=0 is the default
	$(SIM) one $(SEED)

.PHONY: sim test-sim sim-soak sim-one
