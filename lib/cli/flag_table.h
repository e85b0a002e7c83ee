// The flags of one tool as data: parsing, help, man pages and completion all
// read the same table.

#ifndef LIB_CLI_FLAG_TABLE_H_
#define LIB_CLI_FLAG_TABLE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/cli/tool.h"

namespace firstframe::cli {

struct Flag {
  std::string name;  // with underscores
  std::string help;
  std::string default_value;
  std::string placeholder;           // "N", "FILE", "text|json"; empty for bool
  std::vector<std::string> choices;  // empty: any value the type takes
  bool is_bool = false;
  // Sets the flag; InvalidArgument when the value is not of its type.
  std::function<absl::Status(absl::string_view)> set;
};

struct FlagSection {
  std::string title;
  std::vector<Flag> flags;
};

struct FlagTable {
  std::vector<FlagSection> sections;

  const Flag* Find(absl::string_view name) const;
  std::vector<std::string> Names() const;
};

// Values of the flags that lib/cli itself defines.
struct CommonFlags {
  Format format = Format::kText;
  std::string output = "-";
  std::string color = "auto";
  std::string generate;
  bool quiet = false;
  bool help = false;
  bool version = false;
};

// Builds the table: the tool's own ABSL_FLAGs in its groups, then the common
// flags, which set `*common` (it must outlive the table). A group or a choice
// that names no flag is a bug and stops the process.
FlagTable BuildFlagTable(const Tool& tool, CommonFlags* common);

// Sets flags from `words` (without the program's name) and returns the others,
// in order. --x=v and --x v; --x and --nox for bools; '-' and '_' are equal in
// names; "--" ends flags; "-" and negative numbers are not flags; -h is --help,
// -q --quiet. Names of the flags set are appended to `*given`.
// UsageError with the nearest name for an unknown flag.
absl::StatusOr<Arguments> ParseFlags(const FlagTable& table,
                                     const std::vector<std::string>& words,
                                     std::vector<std::string>* given);

absl::string_view FormatName(Format format);

}  // namespace firstframe::cli

#endif  // LIB_CLI_FLAG_TABLE_H_
