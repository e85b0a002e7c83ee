"""firstframe_tool: one binary, its CLI test, and its generated page under docs/tools."""

def firstframe_tool(name, deps, data = [], test_data = [], test_args = [], test_size = "small", **kwargs):
    """Declares tools/<name>.cc and tools/<name>_cli_test.sh.

    Args:
      name: of the binary, its source and its flags.
      deps: of the binary.
      data: files that the binary opens at run time.
      test_data: files that the CLI test reads, beside the binary and its page.
      test_args: of the CLI test, after the binary and its page.
      test_size: of the CLI test.
      **kwargs: for cc_binary.
    """
    native.cc_binary(
        name = name,
        srcs = [name + ".cc"],
        data = data,
        deps = deps,
        **kwargs
    )
    native.sh_test(
        name = name + "_cli_test",
        size = test_size,
        srcs = [name + "_cli_test.sh"],
        args = [
            "$(rootpath :%s)" % name,
            "$(rootpath //docs/tools:%s.md)" % name,
        ] + test_args,
        data = [
            ":cli_test.sh",
            ":" + name,
            "//docs/tools:%s.md" % name,
        ] + test_data,
    )
