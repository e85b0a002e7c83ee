"""Fuzz targets: one source, two builds.

A target's source defines LLVMFuzzerTestOneInput, and may define
std::vector<std::string> FuzzSeeds() for seeds that code builds.

    bazel test //lib/safetensors:header_fuzz
replays the corpus and its neighbourhood (third_party/fuzz_replay_main.cc);

    bazel build --config=fuzz //lib/safetensors:header_fuzz
    bazel-bin/lib/safetensors/header_fuzz -max_total_time=300 SEED_FOLDER
searches with clang's libFuzzer and AddressSanitizer.
"""

def ff_fuzz_test(name, srcs, deps, corpus = [], size = "small"):
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs + select({
            "//third_party:is_fuzzing": [],
            "//conditions:default": ["//third_party:fuzz_replay_main.cc"],
        }),
        args = ["$(rootpaths {})".format(label) for label in corpus],
        data = corpus,
        linkstatic = 1,  # so that the binary runs from anywhere
        linkopts = select({
            "//third_party:is_fuzzing": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        deps = deps,
    )
