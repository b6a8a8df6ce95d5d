# The benchmarks are in the files of their parts; here they are tested.

BENCHES := bench bench-daemon bench-python bench-node bench-servers

# A little of every part: it must run to its end, and its own checks must pass. No time is judged.
test-bench: export BENCH_SMALL := 1
test-bench: $(BENCHES) ## Test the benchmarks: a small form of each

.PHONY: test-bench
