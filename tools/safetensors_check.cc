// safetensors_check: judges safetensors files, shards and indexes, and compares
// checkpoints.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lib/base/hasher.h"
#include "lib/base/status_macros.h"
#include "lib/cli/input.h"
#include "lib/cli/tool.h"
#include "lib/safetensors/check.h"
#include "lib/safetensors/check_report.h"
#include "lib/safetensors/checkpoint.h"
#include "lib/safetensors/diff.h"

ABSL_FLAG(bool, lenient, false,
          "Accept what other readers take and nothing can misread: trailing "
          "bytes, white space in front, NUL in names, a stale index.");
ABSL_FLAG(std::string, hash, "none",
          "Hash each file. With sha256, a blob of the Hugging Face "
          "cache must have the hash it is named after.");
ABSL_FLAG(bool, summary, false,
          "Add up element types, sizes, alignment and parameters.");
ABSL_FLAG(bool, diff, false,
          "Compare two checkpoints: names, shapes, element types, values.");

namespace firstframe {
namespace {

cli::Tool Describe() {
  cli::Tool tool;
  tool.name = "safetensors_check";
  tool.summary = "Checks that safetensors files, shards and indexes are sound.";
  tool.arguments = "PATH... | --diff A B";
  tool.description =
      "A PATH is a file, an index, or a folder: its indexes with their shards "
      "and every other *.safetensors in it, or those of a pipeline's "
      "components. Each finding has the byte where it is, what was found and "
      "what was expected. The rules are in docs/formats/safetensors.md, the "
      "records in docs/formats/safetensors_check.md.";
  tool.formats = {cli::Format::kText, cli::Format::kJsonl};
  tool.groups = {{"What to do", {"diff", "summary", "hash"}},
                 {"How to judge", {"lenient"}}};
  tool.choices = {{"hash", {"none", "sha256", "xxh3"}}};
  tool.exits = {
      {cli::Exit::kOk, "every file is sound; with --diff: equal"},
      {cli::Exit::kFinding, "a file is not; with --diff: different"},
      {cli::Exit::kTrouble,
       "could not tell (usage, I/O; with --diff: a file is not sound)"}};
  tool.examples = {
      {"safetensors_check ~/.cache/huggingface/hub/models--*/snapshots/*",
       "did every download finish?"},
      {"safetensors_check --hash=sha256 --format=jsonl transformer",
       "findings and hashes for a program"},
      {"safetensors_check --diff before/vae after/vae",
       "which weights changed, and by how much?"}};
  return tool;
}

Strictness ChosenStrictness() {
  return absl::GetFlag(FLAGS_lenient) ? Strictness::kLenient
                                      : Strictness::kStrict;
}

absl::StatusOr<cli::Exit> Check(const cli::Arguments& paths, cli::Io& io) {
  const bool is_jsonl = io.format == cli::Format::kJsonl;
  CheckOptions options;
  options.strictness = ChosenStrictness();
  options.hash = ParseHashKind(absl::GetFlag(FLAGS_hash));
  ConformanceCheck check(options, [&](const FileReport& report) {
    if (is_jsonl) {
      WriteFileReportJsonl(report, options.hash, io.out);
    } else {
      WriteFileReportText(report, io.out);
    }
  });
  bool could_read = true;
  for (const std::string& path : paths) {
    const absl::Status status = check.Check(cli::ResolvePath(path));
    if (status.ok()) continue;
    could_read = false;  // and on to the next
    io.Note(std::string(status.message()));
  }
  const CheckTotals& totals = check.totals();
  if (absl::GetFlag(FLAGS_summary)) {
    (is_jsonl ? WriteSummaryJsonl : WriteSummaryText)(totals.summary, io.out);
  }
  (is_jsonl ? WriteTotalsJsonl : WriteTotalsText)(totals, io.out);
  if (!could_read) return cli::Exit::kTrouble;
  return totals.invalid == 0 ? cli::Exit::kOk : cli::Exit::kFinding;
}

absl::StatusOr<cli::Exit> Diff(const cli::Arguments& paths, cli::Io& io) {
  const bool is_jsonl = io.format == cli::Format::kJsonl;
  const CheckpointOptions options = {.strictness = ChosenStrictness()};
  FF_ASSIGN_OR_RETURN(const Checkpoint a,
                      Checkpoint::Open(cli::ResolvePath(paths[0]), options));
  FF_ASSIGN_OR_RETURN(const Checkpoint b,
                      Checkpoint::Open(cli::ResolvePath(paths[1]), options));
  FF_ASSIGN_OR_RETURN(
      const DiffTotals totals,
      DiffCheckpoints(a, b, [&](const TensorDifference& difference) {
        (is_jsonl ? WriteDifferenceJsonl : WriteDifferenceText)(difference,
                                                                io.out);
      }));
  (is_jsonl ? WriteDiffTotalsJsonl : WriteDiffTotalsText)(totals, io.out);
  return totals.is_equal() ? cli::Exit::kOk : cli::Exit::kFinding;
}

absl::StatusOr<cli::Exit> Run(const cli::Arguments& arguments, cli::Io& io) {
  for (const std::string& path : arguments) {
    if (path == "-") {
      return cli::UsageError(
          "standard input has no size to check a header against: give a file");
    }
  }
  if (!absl::GetFlag(FLAGS_diff)) {
    if (arguments.empty()) return cli::UsageError("expected a PATH");
    return Check(arguments, io);
  }
  if (arguments.size() != 2) {
    return cli::UsageError(absl::StrCat("--diff: found ", arguments.size(),
                                        " paths, expected A and B"));
  }
  if (absl::GetFlag(FLAGS_summary) || absl::GetFlag(FLAGS_hash) != "none") {
    return cli::UsageError("--diff goes without --summary and --hash");
  }
  return Diff(arguments, io);
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  return firstframe::cli::Main(argc, argv, firstframe::Describe(),
                               firstframe::Run);
}
