"""Finds an installed CUDA toolkit; yields a repository of empty targets when there is none."""

# cuDNN, NCCL, CUPTI and cuFile headers lie beside CUDA's own in a toolkit
# folder; the libraries themselves are opened at run time.
_FOUND = """
package(default_visibility = ["//visibility:public"])
# CUDA {version} at {path}
sh_binary(name = "nvcc", srcs = ["nvcc.sh"])
filegroup(name = "compiler_files", srcs = [])
cc_library(
    name = "headers",
    hdrs = glob(["include/*.h", "include/*.hpp", "include/crt/**", "include/nvtx3/**"], allow_empty = False),
    includes = ["include"],
)
cc_library(
    name = "cudart",
    linkopts = ["-L{path}/lib64", "-lcudart_static", "-lpthread", "-ldl", "-lrt"],
    deps = [":headers"],
)
cc_library(name = "nvtx", linkopts = ["-ldl"], deps = [":headers"])
"""

_MISSING = """
package(default_visibility = ["//visibility:public"])
sh_binary(name = "nvcc", srcs = ["nvcc.sh"])
filegroup(name = "compiler_files", srcs = [])
cc_library(name = "headers")
cc_library(name = "cudart")
cc_library(name = "nvtx")
"""

def _impl(rctx):
    path = rctx.os.environ.get("CUDA_PATH", "")
    if not path:
        nvcc = rctx.which("nvcc")
        path = str(nvcc.realpath.dirname.dirname) if nvcc else "/usr/local/cuda"
    nvcc = rctx.path(path + "/bin/nvcc")
    if not nvcc.exists:
        rctx.file("nvcc.sh", "#!/bin/sh\necho 'no CUDA toolkit was found; set CUDA_PATH' >&2\nexit 1\n")
        rctx.file("BUILD.bazel", _MISSING)
        rctx.file("found.bzl", "CUDA_FOUND = False\nCUDA_VERSION = \"none\"\n")
        return
    res = rctx.execute([str(nvcc), "--version"])
    release = [l for l in res.stdout.split("\n") if "release" in l][0]
    version = release.split("release ")[1].split(",")[0]
    rctx.symlink(path + "/include", "include")
    rctx.file("found.bzl", "CUDA_FOUND = True\nCUDA_VERSION = {}\n".format(repr(version)))
    rctx.file("nvcc.sh", "#!/bin/sh\nexec {} \"$@\"\n".format(nvcc))
    rctx.file("BUILD.bazel", _FOUND.format(path = path, version = version))

cuda_configure = repository_rule(
    implementation = _impl,
    environ = ["CUDA_PATH", "PATH"],
    local = True,
    configure = True,
)
