"""Rewrites the generated part of the maps here from a FastVideo checkout.

    python3 generate.py FASTVIDEO COMMIT

FASTVIDEO is the folder that holds fastvideo/configs. Each family's rules are
read from the dictionary `param_names_mapping` of its config, without importing
it, and turned from parameters to modules. Lines above the marker are written by
hand, come first, and are kept.
"""

import ast
import pathlib
import re
import sys

MARKER = "# Generated below this line; see generate.py."

# Ours, by FastVideo's file. Those without rules, or with nothing but the
# identity, need no map.
FAMILIES = {
    "cosmos": "cosmos",
    "cosmos2_5": "cosmos2_5",
    "dreamx_world": "dreamx_world",
    "flux2": "flux_2",
    "gen3c": "gen3c",
    "glm_image": "glm_image",
    "hunyuan": "hunyuanvideo",
    "hunyuan15": "hunyuanvideo15",
    "hunyuan_gamecraft": "hunyuangamecraft",
    "hyworld": "hyworld",
    "kandinsky5": "kandinsky5",
    "lingbotworld": "lingbotworld",
    "longcat": "longcat",
    "ltx2": "ltx2",
    "matrixgame2": "matrixgame2",
    "matrixgame3": "matrixgame3",
    "minimax_h3": "minimax_h3",
    "stable_audio": "stable_audio",
    "wan": "wanvideo",
}

# What stands for a parameter's own name at the end of a pattern.
TAIL = re.compile(r"\\\.\((?:\.\*|weight\|bias)\)\$?$")
# The same, but for one inner module. RE2 has no look-ahead, and a module's own
# name needs none.
TAIL_BUT = re.compile(r"\\\.\(\?!\w+\\\.\)\(\.\*\)\$$")


def mapping_of(source):
    """The first class's param_names_mapping, as [(pattern, replacement)]."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and node.target.id == "param_names_mapping"
        ):
            for keyword in node.value.keywords:
                if keyword.arg == "default_factory":
                    return list(ast.literal_eval(keyword.value.body).items())
    raise SystemExit("no param_names_mapping found")


def module_rule(pattern, replacement):
    """A rule on modules: the parameter's name at the end becomes an optional
    path, so that the rule holds for the module and for what is inside it."""
    part = ""
    if isinstance(replacement, tuple):
        replacement, index, count = replacement
        part = f" {index}/{count}"
    group = re.compile(pattern).groups
    end = f".\\{group}"
    if TAIL_BUT.search(pattern) and replacement.endswith(end):
        pattern = TAIL_BUT.sub("$", pattern)
        replacement = replacement[: -len(end)]
    elif TAIL.search(pattern) and replacement.endswith(end):
        pattern = TAIL.sub(r"(\\..*)?$", pattern)
        replacement = replacement[: -len(end)] + f"\\{group}"
    if not pattern.startswith("^"):
        pattern = "^" + pattern  # Python's match() begins at the beginning
    return f"{pattern} => {replacement}{part}"


def main():
    root, commit = pathlib.Path(sys.argv[1]), sys.argv[2]
    here = pathlib.Path(__file__).parent
    for family, name in FAMILIES.items():
        config = f"fastvideo/configs/models/dits/{name}.py"
        rules = mapping_of((root / config).read_text())
        path = here / f"{family}.map"
        hand = path.read_text().split(MARKER)[0] if path.exists() else ""
        if not hand:
            hand = f"# {family}: the checkpoint's names to FastVideo's.\n"
        lines = [module_rule(*rule) for rule in rules]
        path.write_text(
            hand.rstrip("\n")
            + f"\n\n{MARKER}\n# {config}, FastVideo {commit[:12]}.\n"
            + "\n".join(lines)
            + "\n"
        )


if __name__ == "__main__":
    main()
