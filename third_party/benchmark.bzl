"""Benchmarks that cannot rot."""

def ff_benchmark(name, srcs, deps, smoke_filter = ".", size = "small"):
    """A Google Benchmark binary (manual) and NAME_smoke_test, which runs it briefly.

    smoke_filter selects the cases that the test runs.
    """
    native.cc_binary(
        name = name,
        testonly = True,
        srcs = srcs,
        tags = ["manual"],
        deps = deps + ["@benchmark"],
    )
    native.cc_test(
        name = name + "_smoke_test",
        size = size,
        srcs = srcs,
        args = [
            "--benchmark_min_time=0.001",
            "--benchmark_filter=" + smoke_filter,
        ],
        deps = deps + ["@benchmark"],
    )
