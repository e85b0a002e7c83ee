#include "lib/cli/tool.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/output_file.h"
#include "lib/base/status_macros.h"
#include "lib/base/version.h"
#include "lib/cli/flag_table.h"
#include "lib/cli/help.h"
#include "lib/cli/input.h"
#include "lib/cli/output_stream.h"
#include "lib/cli/tty.h"

namespace firstframe::cli {
namespace {

std::vector<std::string>& GivenFlags() {
  static auto* const given = new std::vector<std::string>();
  return *given;
}

std::string VersionLine(const Tool& tool) {
  const BuildInfo info = GetBuildInfo();
  return absl::StrCat("firstframe ", tool.name, " ", info.version, " (commit ",
                      info.commit, ", CUDA ", info.cuda_toolkit, ")\n");
}

// What --help, --version and --generate print, or nothing.
std::optional<std::string> Requested(const Tool& tool, const FlagTable& table,
                                     const CommonFlags& common) {
  if (common.help) return RenderHelp(tool, table);
  if (common.version) return VersionLine(tool);
  if (common.generate == "bash") return RenderBash(tool, table);
  if (common.generate == "man") return RenderMan(tool, table);
  if (common.generate == "markdown") return RenderMarkdown(tool, table);
  return std::nullopt;
}

// Help is asked for, also where another word on the line is wrong.
bool AsksForHelp(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

absl::StatusOr<Exit> RunBody(const Tool& tool, const CommonFlags& common,
                             const Arguments& arguments, Body body) {
  // Created before the work, so that a result always has a place to go.
  std::unique_ptr<OutputStream> stream;
  if (common.output == "-") {
    stream = OutputStream::ForStdout();
  } else {
    FF_ASSIGN_OR_RETURN(OutputFile file,
                        OutputFile::Create(ResolvePath(common.output)));
    stream = OutputStream::ForFile(std::move(file));
  }
  const bool is_terminal = common.output == "-" && IsTerminal(STDOUT_FILENO);
  Io io = {.out = *stream,
           .err = std::cerr,
           .format = common.format,
           .color = tool.has_color &&
                    UseColor(common.color, is_terminal, std::getenv("NO_COLOR"),
                             std::getenv("TERM")),
           .progress = !common.quiet && IsTerminal(STDERR_FILENO),
           .quiet = common.quiet,
           .columns = is_terminal ? TerminalColumns(STDOUT_FILENO) : 80,
           .tool = tool.name};
  absl::StatusOr<Exit> exit = body(arguments, io);
  const absl::Status written =
      stream->Finish(/*keep_empty=*/exit.ok() && io.has_result);
  if (exit.ok() && !written.ok()) return written;
  return exit;
}

// A file's name may hold anything, and a message is one line.
std::string OneLine(absl::string_view message) {
  std::string line;
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppend(&line, "\\x", absl::Hex(byte, absl::kZeroPad2));
    } else {
      line.push_back(c);
    }
  }
  return line;
}

int Report(const Tool& tool, const absl::Status& status) {
  std::cerr << tool.name << ": " << OneLine(status.message()) << "\n";
  if (IsUsageError(status)) {
    std::cerr << "try '" << tool.name << " --help'\n";
  }
  const bool is_unavailable =
      absl::IsUnavailable(status) || absl::IsUnimplemented(status);
  return static_cast<int>(is_unavailable ? Exit::kUnavailable : Exit::kTrouble);
}

}  // namespace

void Io::Note(absl::string_view message) const {
  if (!quiet) err << tool << ": " << message << "\n" << std::flush;
}

bool WasGiven(absl::string_view flag) {
  for (const std::string& given : GivenFlags()) {
    if (given == flag) return true;
  }
  return false;
}

int Main(int argc, char** argv, const Tool& tool, Body body) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  CommonFlags common;
  const FlagTable table = BuildFlagTable(tool, &common);
  common.help = AsksForHelp(words);
  absl::StatusOr<Arguments> arguments =
      common.help ? Arguments() : ParseFlags(table, words, &GivenFlags());
  if (!arguments.ok()) return Report(tool, arguments.status());
  absl::StatusOr<Exit> exit = Exit::kOk;
  if (const auto text = Requested(tool, table, common)) {
    auto stream = OutputStream::ForStdout();
    *stream << *text;
    if (const absl::Status written = stream->Finish(/*keep_empty=*/true);
        !written.ok()) {
      exit = written;
    }
  } else {
    exit = RunBody(tool, common, *arguments, body);
  }
  if (!exit.ok()) return Report(tool, exit.status());
  return static_cast<int>(*exit);
}

}  // namespace firstframe::cli
