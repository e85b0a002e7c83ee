// offload_bench: what does keeping a frozen module on the host cost?

#include "lib/offload/offload_bench.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "lib/base/byte_size.h"
#include "lib/base/status_macros.h"
#include "lib/cli/input.h"
#include "lib/cli/interrupt.h"
#include "lib/cli/progress.h"
#include "lib/cli/tool.h"
#include "lib/cuda/device.h"
#include "lib/cuda/runtime.h"
#include "lib/offload/offload_report.h"
#include "lib/safetensors/checkpoint.h"

ABSL_FLAG(std::string, model_path, "",
          "{PATH} Component folder, safetensors file or index to offload.");
ABSL_FLAG(std::string, bytes, "",
          "{SIZE} Offload a synthetic module of this size instead: 4294967296, "
          "4GiB.");
ABSL_FLAG(
    std::string, strategy, "frozen,roundtrip",
    "{LIST} Ways to time, in order: frozen, roundtrip, mapped, layerwise.");
ABSL_FLAG(int, cycles, 5, "Cycles of load and unload, each way.");
ABSL_FLAG(bool, pin, true, "Pin the host copy, as far as limits allow.");
ABSL_FLAG(
    std::string, pin_budget, "",
    "{SIZE} Never pin more than this: 2GiB, 0. Nor, set or not, more than "
    "the cgroup, the machine and RLIMIT_MEMLOCK leave.");
ABSL_FLAG(
    int, first_chunk_mib, 32,
    "Size of the first device allocation, MiB; each later one is twice as "
    "large.");
ABSL_FLAG(int, chunk_mib, 1024, "Size of the largest, MiB.");
ABSL_FLAG(int, rest_ms, 10,
          "Rest after each cycle, ms, as a module does between its uses. After "
          "an unload the driver clears device memory; a load that follows at "
          "once waits for that.");
ABSL_FLAG(int, threads, 8, "Threads that populate and fill the host copy.");
ABSL_FLAG(bool, guard, false,
          "Before each unload, prove on the device that no tensor changed.");
ABSL_FLAG(bool, verify, true,
          "After the last cycle, compare every tensor on the device and on the "
          "host with what it was.");
ABSL_FLAG(std::string, device, "auto", "auto, cpu, cuda, or cuda:N.");

namespace firstframe {
namespace {

cli::Tool Describe() {
  cli::Tool tool;
  tool.name = "offload_bench";
  tool.summary =
      "Times ways to keep a frozen module on the host between its uses.";
  tool.description =
      "A frozen module's bytes need copying to the device, never back. frozen "
      "keeps one pinned host copy and drops the device's; mapped makes the "
      "page "
      "cache of the checkpoint that copy; layerwise passes blocks through a "
      "ring of two; roundtrip is what module.to(\"cpu\") and .to(\"cuda\") do. "
      "Without a device every way is the identity: nothing moves.";
  tool.formats = {cli::Format::kText, cli::Format::kJson};
  tool.groups = {
      {"What to move", {"model_path", "bytes"}},
      {"How", {"strategy", "cycles", "rest_ms", "device", "guard", "verify"}},
      {"Memory",
       {"pin", "pin_budget", "first_chunk_mib", "chunk_mib", "threads"}}};
  tool.exits = {{cli::Exit::kOk, "measured, and every tensor came back"},
                {cli::Exit::kFinding, "a tensor did not come back as it was"},
                {cli::Exit::kTrouble, "could not measure (usage, I/O, memory)"},
                {cli::Exit::kUnavailable, "--device=cuda without a GPU"}};
  tool.examples = {
      {"offload_bench --model_path=Wan2.1/vae",
       "this VAE, beside the baseline"},
      {"offload_bench --bytes=4GiB --strategy=frozen,roundtrip,layerwise "
       "--format=json",
       "four GiB, three ways, for a program"}};
  return tool;
}

absl::StatusOr<uint64_t> ReadSize(absl::string_view flag,
                                  const std::string& text) {
  const absl::StatusOr<uint64_t> size = ParseByteSize(text);
  if (size.ok()) return size;
  return cli::UsageError(
      absl::StrCat("--", flag, ": ", size.status().message()));
}

absl::StatusOr<OffloadBenchOptions> ReadOptions() {
  OffloadBenchOptions options;
  options.strategies.clear();
  for (const absl::string_view name :
       absl::StrSplit(absl::GetFlag(FLAGS_strategy), ',', absl::SkipEmpty())) {
    const auto strategy = ParseOffloadStrategy(name);
    if (!strategy) {
      return cli::UsageError(
          absl::StrCat("--strategy: found '", name,
                       "', expected frozen, roundtrip, mapped or layerwise"));
    }
    options.strategies.push_back(*strategy);
  }
  if (options.strategies.empty()) {
    return cli::UsageError("--strategy: expected one at least");
  }
  for (const auto& [name, value] :
       {std::pair<const char*, int>("cycles", absl::GetFlag(FLAGS_cycles)),
        std::pair<const char*, int>("chunk_mib",
                                    absl::GetFlag(FLAGS_chunk_mib)),
        std::pair<const char*, int>("first_chunk_mib",
                                    absl::GetFlag(FLAGS_first_chunk_mib)),
        std::pair<const char*, int>("threads", absl::GetFlag(FLAGS_threads))}) {
    if (value < 1) {
      return cli::UsageError(
          absl::StrCat("--", name, ": found ", value, ", expected 1 at least"));
    }
  }
  if (const int rest_ms = absl::GetFlag(FLAGS_rest_ms); rest_ms < 0) {
    return cli::UsageError(
        absl::StrCat("--rest_ms: found ", rest_ms, ", expected 0 at least"));
  }
  options.cycles = absl::GetFlag(FLAGS_cycles);
  options.verify = absl::GetFlag(FLAGS_verify);
  options.store.guard = absl::GetFlag(FLAGS_guard);
  options.rest = absl::Milliseconds(absl::GetFlag(FLAGS_rest_ms));
  options.store.chunks = {uint64_t(absl::GetFlag(FLAGS_first_chunk_mib)) << 20,
                          uint64_t(absl::GetFlag(FLAGS_chunk_mib)) << 20};
  options.store.pin.pin = absl::GetFlag(FLAGS_pin);
  options.store.pin.threads = absl::GetFlag(FLAGS_threads);
  if (!absl::GetFlag(FLAGS_pin_budget).empty()) {
    FF_ASSIGN_OR_RETURN(
        options.store.pin.budget_bytes,
        ReadSize("pin_budget", absl::GetFlag(FLAGS_pin_budget)));
  }
  return options;
}

absl::StatusOr<cli::Exit> Run(const cli::Arguments& arguments, cli::Io& io) {
  if (!arguments.empty()) {
    return cli::UsageError("unexpected argument '" + arguments[0] + "'");
  }
  const std::string path = absl::GetFlag(FLAGS_model_path);
  OffloadSource source;
  if (path.empty() == absl::GetFlag(FLAGS_bytes).empty()) {
    return cli::UsageError("expected one of --model_path and --bytes");
  }
  if (path.empty()) {
    FF_ASSIGN_OR_RETURN(source.synthetic_bytes,
                        ReadSize("bytes", absl::GetFlag(FLAGS_bytes)));
    if (source.synthetic_bytes == 0) {
      return cli::UsageError("--bytes: found 0, expected 1 at least");
    }
  }
  FF_ASSIGN_OR_RETURN(OffloadBenchOptions options, ReadOptions());
  FF_ASSIGN_OR_RETURN(const cuda::DeviceSpec wanted,
                      cuda::ParseDeviceSpec(absl::GetFlag(FLAGS_device)));
  FF_ASSIGN_OR_RETURN(const cuda::DeviceSpec device,
                      cuda::ResolveDevice(wanted));
  const bool has_device = device.kind == cuda::DeviceKind::kCuda;
  OffloadContext context;
  context.machine = ReadMachine();
  context.memory = ReadMemoryBudget();
  context.source = path.empty() ? "synthetic" : path;
  if (has_device) {
    options.device = device.ordinal;
    FF_ASSIGN_OR_RETURN(context.device,
                        cuda::GetRuntime().GetProperties(device.ordinal));
  } else {
    io.Note("no device: every strategy is the identity");
  }
  std::optional<Checkpoint> checkpoint;
  if (!path.empty()) {
    FF_ASSIGN_OR_RETURN(checkpoint, Checkpoint::Open(cli::ResolvePath(path)));
    source.checkpoint = &*checkpoint;
  }
  cli::Progress progress(io.err, io.progress, "offload");
  options.on_progress = [&](double fraction) { progress.Update(fraction); };
  cli::CatchInterrupts();
  options.is_cancelled = [] { return cli::InterruptSignal() != 0; };
  FF_ASSIGN_OR_RETURN(
      const OffloadBenchResult result,
      RunOffloadBench(source, options,
                      has_device ? &cuda::GetRuntime() : nullptr));
  progress.Clear();
  if (io.format == cli::Format::kJson) {
    WriteOffloadJson(result, options, context, io.out);
  } else {
    WriteOffloadText(result, context, io.out);
  }
  for (const StrategyResult& strategy : result.strategies) {
    if (strategy.verified == false) return cli::Exit::kFinding;
  }
  return cli::Exit::kOk;
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  return firstframe::cli::Main(argc, argv, firstframe::Describe(),
                               firstframe::Run);
}
