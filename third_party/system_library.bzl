"""Wraps installed Debian packages as cc_library targets.

Headers under /usr/include are on the compiler's own path, so a wrapper is a
name and link flags. The flags come from pkg-config; a package without a .pc
file names a header to look for instead. The package's version is written into
the generated BUILD file, which reanalyses when the package is upgraded.
"""

def _link_flags(flags, static):
    """Turns -lNAME into -l:libNAME.a for `static`, leaving system libraries alone."""
    system = ["-lpthread", "-lm", "-ldl", "-lrt"]
    if not static:
        return flags
    libs = ["-l:lib%s.a" % f[2:] for f in flags if f.startswith("-l") and f not in system]
    rest = [f for f in flags if f in system] + ["-lpthread", "-ldl"]
    if len(libs) > 1:
        # Abseil's archives refer to each other in both directions.
        libs = ["-Wl,--start-group"] + libs + ["-Wl,--end-group"]
    return libs + rest

def _impl(rctx):
    build = ["package(default_visibility = [\"//visibility:public\"])"]
    pkg_config = rctx.which("pkg-config")
    if rctx.attr.modules and not pkg_config:
        fail("pkg-config is not installed: run ./bootstrap.sh, or apt-get install pkg-config")
    for name, module in rctx.attr.modules.items():
        res = rctx.execute([pkg_config, "--libs", module])
        if res.return_code:
            fail("{} was not found: run ./bootstrap.sh, or apt-get install {}\n{}".format(module, rctx.attr.apt, res.stderr))
        version = rctx.execute([pkg_config, "--modversion", module]).stdout.strip()
        flags = [f for f in res.stdout.strip().split(" ") if f]
        build.append("# {} {}".format(module, version))
        build.append("cc_library(name = {}, linkopts = {})".format(
            repr(name),
            repr(_link_flags(flags, rctx.attr.static)),
        ))
    for name, header in rctx.attr.headers.items():
        if not rctx.path("/usr/include/" + header).exists:
            fail("{} was not found: run ./bootstrap.sh, or apt-get install {}".format(header, rctx.attr.apt))
        build.append("cc_library(name = {}, linkopts = [\"-l{}\"])".format(repr(name), name))
    rctx.file("BUILD.bazel", "\n".join(build) + "\n")

system_library = repository_rule(
    implementation = _impl,
    attrs = {
        "apt": attr.string(mandatory = True, doc = "packages that bring the library"),
        "headers": attr.string_dict(doc = "target and library name to a header that must exist"),
        "modules": attr.string_dict(doc = "target name to pkg-config module"),
        "static": attr.bool(doc = "link the archives, so that the binary runs where the package is absent"),
    },
    environ = ["PKG_CONFIG_PATH"],
    local = True,
    configure = True,
)
