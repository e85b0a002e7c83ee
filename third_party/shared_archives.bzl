"""Makes the archives of system_library(static = True) stand for shared libraries.

Debian builds its archives for executables: they do not link into a shared
library. A folder of linker scripts named as the archives, put in front of the
linker's search path, sends `-l:libabsl_status.a` to libabsl_status.so. So one
cc_library links its dependencies statically into our tools and dynamically into
our shared libraries:

    cc_binary(
        name = "libx.so",
        additional_linker_inputs = ["@shared_archives//:scripts"],
        linkopts = ["-Lexternal/shared_archives/lib", "-Wl,--as-needed"],
        linkshared = True,
    )
"""

_FIND = """
for so in /usr/lib/*-linux-gnu/lib*.so; do
  [ -f "${so%.so}.a" ] && echo "$so"
done
"""

def _impl(rctx):
    found = rctx.execute(["bash", "-c", _FIND]).stdout.split("\n")
    for so in found:
        name = so.rpartition("/")[2]
        for prefix in rctx.attr.prefixes:
            if name.startswith(prefix):
                rctx.file("lib/" + name[:-3] + ".a", "INPUT(AS_NEEDED(%s))\n" % so)
                break
    rctx.file(
        "BUILD.bazel",
        "filegroup(name = \"scripts\", srcs = glob([\"lib/*\"]), visibility = [\"//visibility:public\"])\n",
    )

shared_archives = repository_rule(
    implementation = _impl,
    attrs = {"prefixes": attr.string_list(doc = "of the libraries' names")},
    local = True,
    configure = True,
)
