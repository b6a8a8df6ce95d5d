# Tests of the benchmarks. The benchmarks themselves are in the files of their parts.

BENCHES := bench bench-daemon bench-python bench-node bench-servers

# Runs a short form of each benchmark, which must succeed. Times are not compared with targets.
test-bench: export BENCH_SMALL := 1
test-bench: $(BENCHES) ## Test the benchmarks with a short run of each

.PHONY: test-bench
