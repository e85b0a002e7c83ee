// What every Firstframe binary does before and after its own work: flags, help,
// version, generated documentation, input and output streams, exit codes.
//
// A tool is a description, a body and one call:
//
//   int main(int argc, char** argv) {
//     return firstframe::cli::Main(argc, argv, Describe(), Run);
//   }
//
// Flags are ABSL_FLAGs in tools/<name>.cc; that is how they are told from flags
// of the libraries. The contract (exit codes, streams) is in docs/design.md.

#ifndef LIB_CLI_TOOL_H_
#define LIB_CLI_TOOL_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/cli/usage_error.h"

namespace firstframe::cli {

enum class Exit {
  kOk = 0,       // yes, equal, done
  kFinding = 1,  // ran, and the answer is no: differs, invalid, over a limit
  kTrouble = 2,  // could not answer: usage, I/O, malformed input
  kUnavailable = 3,  // needs a device, or a build, that is not here
};

enum class Format { kText, kJson, kJsonl, kHtml, kCsv, kGithub, kLog };

// Flags that belong together in --help. Flags named in no group come last.
struct FlagGroup {
  std::string title;
  std::vector<std::string> flags;
};

// A flag that takes one of a few words. Others are refused, with the list.
struct FlagChoices {
  std::string flag;
  std::vector<std::string> values;
};

struct Example {
  std::string command;
  std::string what;
};

struct EnvironmentVariable {
  std::string name;
  std::string meaning;
};

struct ExitMeaning {
  Exit exit;
  std::string meaning;
};

struct Tool {
  std::string name;
  std::string summary;      // one sentence, with its period
  std::string arguments;    // after "[flags]": "LEFT RIGHT"
  std::string description;  // paragraphs; optional
  // Values of --format, the default first; empty: the tool has no --format.
  std::vector<Format> formats;
  bool has_output = true;  // --output=FILE
  bool has_color = false;  // --color=auto|always|never
  std::vector<FlagGroup> groups;
  std::vector<FlagChoices> choices;
  std::vector<ExitMeaning> exits;  // replace the general meanings
  std::vector<EnvironmentVariable> environment;
  std::vector<Example> examples;
};

// The streams and choices that a body works with.
struct Io {
  std::ostream& out;  // the result, and nothing else: stdout or --output
  std::ostream& err;  // messages; use Note() for whole lines
  Format format = Format::kText;
  bool color = false;     // `out` takes ANSI colours
  bool progress = false;  // stderr is a terminal and --quiet is not set
  bool quiet = false;
  int columns = 80;  // width of `out`'s terminal, else 80
  std::string tool;
  // For `body` to clear where another process (rank 0) writes the result: then
  // nothing written leaves --output's file as it is, instead of emptying it.
  bool has_result = true;

  // Writes "tool: message" and a line end to `err`, unless --quiet.
  void Note(absl::string_view message) const;
};

// The words after the flags, in order. Every word after "--" is one of them.
using Arguments = std::vector<std::string>;

using Body = absl::FunctionRef<absl::StatusOr<Exit>(const Arguments&, Io&)>;

// Runs the tool and returns the process's exit status. Handles --help,
// --version and --generate itself. An error from `body` becomes one line on
// stderr and an exit: kUnavailable for Unavailable and Unimplemented, else
// kTrouble; return UsageError() (usage_error.h) for a mistake on the command
// line. What `body` wrote is delivered also when it failed; a result that
// cannot be written in full is kTrouble. Call once, from main.
int Main(int argc, char** argv, const Tool& tool, Body body);

// Returns whether --`flag` was given on this command line (also when its value
// equals the default). For flags that win over an environment variable.
bool WasGiven(absl::string_view flag);

}  // namespace firstframe::cli

#endif  // LIB_CLI_TOOL_H_
