"""embed_text: a text file as a C++ string constant in a cc_library."""

def embed_text(name, src, constant, **kwargs):
    """Declares NAME.h with `inline constexpr char CONSTANT[]` in namespace firstframe.

    Args:
      name: of the library and the header.
      src: the text file; it must not hold )embedded".
      constant: name of the constant, kLikeThis.
      **kwargs: for cc_library.
    """
    header = name + ".h"
    guard = (native.package_name() + "/" + header).upper().replace("/", "_").replace(".", "_") + "_"
    native.genrule(
        name = name + "_header",
        srcs = [src],
        outs = [header],
        cmd = "\n".join([
            "{",
            "echo '// Generated from %s.'" % src,
            "echo '#ifndef %s'" % guard,
            "echo '#define %s'" % guard,
            "echo 'namespace firstframe {'",
            "printf 'inline constexpr char %s[] = R\"embedded('" % constant,
            "cat $<",
            "echo ')embedded\";'",
            "echo '}  // namespace firstframe'",
            "echo '#endif  // %s'" % guard,
            "} > $@",
        ]),
    )
    native.cc_library(
        name = name,
        hdrs = [header],
        **kwargs
    )
