// Renders one tool's flag table: --help, a manual page, Markdown, completion.

#ifndef LIB_CLI_HELP_H_
#define LIB_CLI_HELP_H_

#include <string>

#include "absl/strings/string_view.h"
#include "lib/cli/flag_table.h"
#include "lib/cli/tool.h"

namespace firstframe::cli {

// Returns the text of --help, at most 80 columns wide where words allow.
std::string RenderHelp(const Tool& tool, const FlagTable& table);

// Returns a page for man(1), in roff.
std::string RenderMan(const Tool& tool, const FlagTable& table);

// Returns docs/tools/<name>.md.
std::string RenderMarkdown(const Tool& tool, const FlagTable& table);

// Returns a completion script for bash.
std::string RenderBash(const Tool& tool, const FlagTable& table);

// Breaks `text` at spaces into lines of at most `columns` characters, each with
// `indent` spaces in front (counted in). Line ends in `text` are kept.
std::string WrapText(absl::string_view text, int indent, int columns = 80);

}  // namespace firstframe::cli

#endif  // LIB_CLI_HELP_H_
