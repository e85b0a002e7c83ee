"""A folder made by a script: outputs whose names depend on the machine."""

def _impl(ctx):
    folder = ctx.actions.declare_directory(ctx.label.name)
    ctx.actions.run(
        outputs = [folder],
        inputs = ctx.files.srcs,
        executable = ctx.executable.script,
        arguments = [folder.path] + [f.path for f in ctx.files.srcs],
        mnemonic = "PythonPackage",
        use_default_shell_env = True,
    )
    return [DefaultInfo(
        files = depset([folder]),
        runfiles = ctx.runfiles(files = [folder]),
    )]

python_package = rule(
    implementation = _impl,
    attrs = {
        "script": attr.label(executable = True, cfg = "host", mandatory = True),
        "srcs": attr.label_list(allow_files = True, mandatory = True),
    },
)
