// trace_dump: writes activation records of tensors on disk, and of other tools'
// dumps.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/activation/activation_tracer.h"
#include "lib/activation/dump_source.h"
#include "lib/activation/foreign_trace.h"
#include "lib/activation/trace_input.h"
#include "lib/activation/trace_stat.h"
#include "lib/base/regex.h"
#include "lib/base/status_macros.h"
#include "lib/cli/input.h"
#include "lib/cli/tool.h"
#include "lib/stats/compute.h"

ABSL_FLAG(std::string, layers, "",
          "{REGEX} Only tensors whose name this is found in (RE2 search).");
ABSL_FLAG(std::string, stats,
          "abs_mean,sum,min,max,mean,std,shape,dtype,numel,nan,inf_pos,inf_neg,"
          "zero,h_set,h_pos,sk",
          "{LIST} Statistics, in this order; also rms, amax_idx, exp_hist, "
          "samp. FastVideo's own default is abs_mean,sum.");
ABSL_FLAG(int64_t, step, -1, "{N} Step of every record; -1: null.");
ABSL_FLAG(std::string, run, "", "{NAME} Adds \"run\" to every record.");
ABSL_FLAG(int, rank, -1, "{N} Adds \"rank\" to every record; -1: none.");
ABSL_FLAG(bool, header, false,
          "Begin with a record that says how it was made.");
ABSL_FLAG(int, threads, 0, "{N} Threads; 0: one per processor.");
ABSL_FLAG(std::string, from, "",
          "Read another tool's dump instead of tensors.");
ABSL_FLAG(std::string, side, "baseline",
          "With --from=sglang: whose statistics.");

namespace firstframe {
namespace {

cli::Tool Describe() {
  cli::Tool tool;
  tool.name = "trace_dump";
  tool.summary =
      "Writes activation records of tensors on disk, for trace_diff.";
  tool.arguments = "PATH...";
  tool.description =
      "PATH is a .safetensors, .npy or .npz file, a checkpoint folder or a "
      "folder of such files; globs are expanded. Each tensor becomes one "
      "record "
      "in the form of FastVideo's activation trace, whatever its dtype, from "
      "one pass over its data. With --from, PATH is another tool's dump ('-': "
      "standard input).";
  tool.groups = {{"Which tensors, what of them",
                  {"layers", "stats", "step", "run", "rank", "header"}},
                 {"Other tools' dumps", {"from", "side"}},
                 {"Speed", {"threads"}}};
  tool.choices = {{"from", {"msprobe", "sglang", "te-log", "torchtitan"}},
                  {"side", {"baseline", "target"}}};
  tool.exits = {{cli::Exit::kOk, "records were written"},
                {cli::Exit::kFinding, "nothing matched --layers"},
                {cli::Exit::kTrouble, "usage, I/O or malformed input"}};
  tool.examples = {
      {"trace_dump vae.safetensors > a.jsonl", "every tensor of a checkpoint"},
      {"trace_dump --step=3 'dump/step3/*.npy' >> run.jsonl",
       "activations that a script saved"},
      {"trace_dump --from=msprobe dump.json | trace_diff - ours.jsonl",
       "an Ascend dump against ours"}};
  return tool;
}

absl::StatusOr<std::vector<TraceStat>> Stats() {
  const TraceStatSelection selection =
      ParseTraceStats(absl::GetFlag(FLAGS_stats));
  for (const std::string& warning : selection.warnings) {
    return cli::UsageError(absl::StrCat("--stats: ", warning));
  }
  if (selection.stats.empty()) {
    return cli::UsageError("--stats: expected at least one statistic");
  }
  return selection.stats;
}

absl::StatusOr<cli::Exit> DumpForeign(const cli::Arguments& arguments,
                                      cli::Io& io) {
  if (arguments.size() != 1) {
    return cli::UsageError("--from takes one file");
  }
  FF_ASSIGN_OR_RETURN(const TraceDialect dialect,
                      ParseTraceDialect(absl::GetFlag(FLAGS_from)));
  if (arguments[0] == "-") FF_RETURN_IF_ERROR(cli::ClaimStdin());
  FF_ASSIGN_OR_RETURN(const TraceInput input,
                      TraceInput::Open(cli::ResolvePath(arguments[0])));
  ForeignOptions options;
  options.layers = absl::GetFlag(FLAGS_layers);
  options.target_side = absl::GetFlag(FLAGS_side) == "target";
  const auto counts = NormalizeTrace(input.text(), dialect, options,
                                     [&](const std::string& line) {
                                       io.out << line << "\n";
                                       return absl::OkStatus();
                                     });
  if (!counts.ok()) return Annotate(counts.status(), input.name());
  if (counts->skipped > 0) {
    io.Note(absl::StrCat(input.name(), ": ", counts->skipped,
                         " entries without statistics were skipped"));
  }
  if (counts->records == 0) {
    io.Note(absl::StrCat(input.name(), ": no record matches --layers"));
    return cli::Exit::kFinding;
  }
  return cli::Exit::kOk;
}

class Dumper {
 public:
  Dumper(std::vector<TraceStat> stats, std::unique_ptr<const RE2> layers,
         cli::Io& io)
      : stats_(std::move(stats)), layers_(std::move(layers)), io_(io) {
    options_.request = RequestFor(stats_);
    options_.num_threads = absl::GetFlag(FLAGS_threads);
    if (options_.num_threads <= 0) {
      options_.num_threads = std::max(1u, std::thread::hardware_concurrency());
    }
    if (absl::GetFlag(FLAGS_step) >= 0) keys_.step = absl::GetFlag(FLAGS_step);
    if (absl::GetFlag(FLAGS_rank) >= 0) keys_.rank = absl::GetFlag(FLAGS_rank);
    if (!absl::GetFlag(FLAGS_run).empty()) {
      keys_.run = absl::GetFlag(FLAGS_run);
    }
  }

  void WriteHeader() {
    TraceOptions options;
    options.stats = stats_;
    options.rank = keys_.rank;
    options.run = keys_.run;
    io_.out << FormatTraceHeader(options) << "\n";
  }

  absl::Status Dump(const std::string& path) {
    return ForEachTensor(
        path,
        [this](absl::string_view name) {
          last_seen_ = std::string(name);
          return SearchRegex(*layers_, name);
        },
        [this](absl::string_view name, const TensorView& tensor) {
          return Write(name, tensor);
        });
  }

  int64_t count() const { return count_; }
  const std::string& last_seen() const { return last_seen_; }

 private:
  absl::Status Write(absl::string_view name, const TensorView& tensor) {
    const auto values = ComputeTensorStats(tensor, options_);
    if (!values.ok()) {
      return Annotate(values.status(), absl::StrCat("tensor '", name, "'"));
    }
    keys_.module = std::string(name);
    io_.out << FormatTraceRecord(keys_, stats_, *values, tensor.dtype,
                                 tensor.shape)
            << "\n";
    ++count_;
    return absl::OkStatus();
  }

  const std::vector<TraceStat> stats_;
  const std::unique_ptr<const RE2> layers_;
  cli::Io& io_;
  ComputeOptions options_;
  TraceRecordKeys keys_;
  int64_t count_ = 0;
  std::string last_seen_;
};

absl::StatusOr<cli::Exit> Run(const cli::Arguments& arguments, cli::Io& io) {
  if (arguments.empty()) return cli::UsageError("expected at least one PATH");
  if (!absl::GetFlag(FLAGS_from).empty()) return DumpForeign(arguments, io);
  FF_ASSIGN_OR_RETURN(std::vector<TraceStat> stats, Stats());
  auto layers = CompileRegex(absl::GetFlag(FLAGS_layers));
  if (!layers.ok()) return Annotate(layers.status(), "--layers");
  std::vector<std::string> patterns;
  for (const std::string& argument : arguments) {
    if (argument == "-") {
      return cli::UsageError("'-' needs --from: tensors are read from files");
    }
    patterns.push_back(cli::ResolvePath(argument));
  }
  FF_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                      ExpandInputs(patterns));
  Dumper dumper(std::move(stats), *std::move(layers), io);
  if (absl::GetFlag(FLAGS_header)) dumper.WriteHeader();
  // One bad input of many does not spoil the others.
  absl::Status failure;
  for (const std::string& path : paths) {
    const absl::Status status = dumper.Dump(path);
    if (status.ok()) continue;
    if (failure.ok()) {
      failure = status;
    } else {
      io.Note(std::string(status.message()));
    }
  }
  FF_RETURN_IF_ERROR(failure);
  if (dumper.count() == 0) {
    io.Note(absl::StrCat("no tensor matches --layers='",
                         absl::GetFlag(FLAGS_layers), "'; there is '",
                         dumper.last_seen(), "'"));
    return cli::Exit::kFinding;
  }
  return cli::Exit::kOk;
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  return firstframe::cli::Main(argc, argv, firstframe::Describe(),
                               firstframe::Run);
}
