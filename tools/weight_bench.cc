// weight_bench: how fast do these weights load, and how close is that to what
// the machine can do?

#include "lib/load/weight_bench.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "lib/base/status_macros.h"
#include "lib/cli/input.h"
#include "lib/cli/interrupt.h"
#include "lib/cli/progress.h"
#include "lib/cli/tool.h"
#include "lib/cuda/device.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/cuda/runtime.h"
#include "lib/cuda/stream.h"
#include "lib/dist/collective.h"
#include "lib/dist/join.h"
#include "lib/dist/launch.h"
#include "lib/load/load_source.h"
#include "lib/load/weight_bench_report.h"
#include "lib/safetensors/checkpoint.h"
#include "lib/timing/clock.h"

ABSL_FLAG(std::string, model_path, "",
          "Folder of a model, or one safetensors file or index.");
ABSL_FLAG(std::string, subfolder, "",
          "Component below --model_path (transformer, vae, text_encoder).");
ABSL_FLAG(int, warmup, 1, "Loads before the timed ones, per mode.");
ABSL_FLAG(int, repeats, 3, "Timed loads per mode.");
ABSL_FLAG(std::string, modes, "",
          "Modes to time, comma-separated; empty: FastVideo's and ours.");
ABSL_FLAG(std::string, device, "auto",
          "auto, cpu, cuda, or cuda:N; cuda is this rank's GPU.");
ABSL_FLAG(std::string, cache, "as_is",
          "State of the page cache before each load; proven, or an error.");
ABSL_FLAG(bool, verify, false,
          "Compare a hash of every loaded tensor with a plain read.");
ABSL_FLAG(bool, roofline, true,
          "Measure the machine's limits in the same run.");
ABSL_FLAG(
    std::string, path, "auto",
    "How files are read: auto (page cache, and around it what is not in it, "
    "which stays out), cached (fills it), direct.");
ABSL_FLAG(int, threads, 0,
          "Reading threads; 0: by the CPUs that a rank may use, at most 16.");
ABSL_FLAG(int, read_kib, 1024, "Size of one buffered read, KiB.");
ABSL_FLAG(int, slot_kib, 8192, "Size of a slot of the staging ring, KiB.");
ABSL_FLAG(int, slots, 0,
          "Slots of the staging ring; 0: 8, or 4 where ranks share a machine.");
ABSL_FLAG(int, streams, 1, "Copy streams.");
ABSL_FLAG(int, direct_threads, 4, "Threads of direct reads.");
ABSL_FLAG(int, direct_depth, 4, "Direct reads in flight per thread.");
ABSL_FLAG(int, bucket_mib, 64,
          "Bytes of one broadcast, or of one gather over all ranks, MiB.");
ABSL_FLAG(double, timeout, 60,
          "Seconds that a rank waits for the others before it gives up.");

namespace firstframe {
namespace {

std::optional<std::string> GetVariable(absl::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

cli::Tool Describe() {
  cli::Tool tool;
  tool.name = "weight_bench";
  tool.summary =
      "Times ways to load safetensors weights, against the machine's limits.";
  tool.description =
      "Loads the same checkpoint again and again, tensor by tensor as "
      "FastVideo's benchmarks do and in the ways of this project, into host or "
      "device memory, on one rank or on all that torchrun, mpirun or srun "
      "started. A load's time is that of the slowest rank, from a barrier to "
      "an idle device.";
  std::string modes = "Modes:";
  for (const LoadModeInfo& mode : AllLoadModes()) {
    absl::StrAppend(&modes, "\n  ", mode.name, ": ", mode.what);
  }
  absl::StrAppend(&tool.description, "\n\n", modes);
  tool.formats = {cli::Format::kText, cli::Format::kJson, cli::Format::kGithub};
  tool.groups = {
      {"What to load", {"model_path", "subfolder"}},
      {"What to measure",
       {"modes", "warmup", "repeats", "device", "cache", "verify", "roofline"}},
      {"How to load",
       {"path", "threads", "read_kib", "slot_kib", "slots", "streams",
        "direct_threads", "direct_depth"}},
      {"Ranks", {"bucket_mib", "timeout"}},
  };
  tool.choices = {{"cache", {"as_is", "warm", "cold"}},
                  {"path", {"auto", "cached", "direct"}}};
  tool.exits = {
      {cli::Exit::kOk, "all loads were right"},
      {cli::Exit::kFinding, "--verify found wrong bytes"},
      {cli::Exit::kTrouble,
       "usage, unreadable files, a cache state that was not reached, a rank "
       "that failed"},
      {cli::Exit::kUnavailable, "needs a device, NCCL or MPI that is not here"},
  };
  tool.environment = {
      {"RANK, WORLD_SIZE, LOCAL_RANK", "set by torchrun"},
      {"MASTER_ADDR, MASTER_PORT", "where rank 0 is met"},
      {"OMPI_COMM_WORLD_RANK, ...", "set by mpirun, used without torchrun's"},
      {"SLURM_PROCID, ...", "set by srun, used without the others"},
  };
  tool.examples = {
      {"weight_bench --model_path Wan2.1 --subfolder transformer --verify",
       "one GPU, or the CPU when there is none"},
      {"torchrun --no-python --nproc_per_node=4 weight_bench --model_path M",
       "four GPUs of one machine"},
      {"mpirun -n 4 --bind-to none weight_bench --device=cpu --model_path M",
       "four CPU ranks"},
  };
  return tool;
}

absl::StatusOr<WeightBenchOptions> ReadOptions(const Launch& launch,
                                               bool has_device) {
  WeightBenchOptions options;
  options.warmup = absl::GetFlag(FLAGS_warmup);
  options.repeats = absl::GetFlag(FLAGS_repeats);
  if (options.warmup < 0 || options.repeats < 1) {
    return cli::UsageError("--warmup must be >= 0 and --repeats >= 1");
  }
  const std::string modes = absl::GetFlag(FLAGS_modes);
  options.modes = DefaultLoadModes(launch.world_size, has_device);
  if (!modes.empty()) {
    absl::StatusOr<std::vector<LoadMode>> parsed = ParseLoadModes(modes);
    if (!parsed.ok()) {
      return cli::UsageError(
          absl::StrCat("--modes: ", parsed.status().message()));
    }
    options.modes = *std::move(parsed);
  }
  FF_ASSIGN_OR_RETURN(options.cache,
                      ParseCacheMode(absl::GetFlag(FLAGS_cache)));
  options.verify = absl::GetFlag(FLAGS_verify);
  options.roofline = absl::GetFlag(FLAGS_roofline);
  const std::string path = absl::GetFlag(FLAGS_path);
  options.load.policy = path == "cached"   ? PathPolicy::kCached
                        : path == "direct" ? PathPolicy::kDirect
                                           : PathPolicy::kAuto;
  TransferOptions& transfer = options.load.transfer;
  const int slot_kib = absl::GetFlag(FLAGS_slot_kib);
  transfer.cached_threads = absl::GetFlag(FLAGS_threads);
  const int read_kib = absl::GetFlag(FLAGS_read_kib);
  transfer.cached_slots = absl::GetFlag(FLAGS_slots);
  transfer.copy_streams = absl::GetFlag(FLAGS_streams);
  transfer.direct_threads = absl::GetFlag(FLAGS_direct_threads);
  transfer.direct_slots_per_thread = absl::GetFlag(FLAGS_direct_depth);
  const int bucket_mib = absl::GetFlag(FLAGS_bucket_mib);
  if (read_kib < 4 || slot_kib < read_kib || slot_kib > 1 << 16 ||
      transfer.cached_threads < 0 || transfer.cached_threads > 256 ||
      transfer.cached_slots < 0 || transfer.cached_slots == 1 ||
      transfer.cached_slots > 256 || transfer.copy_streams < 1 ||
      transfer.copy_streams > 64 || transfer.direct_threads < 1 ||
      transfer.direct_threads > 64 || transfer.direct_slots_per_thread < 1 ||
      transfer.direct_slots_per_thread > 64 || bucket_mib < 1) {
    return cli::UsageError(
        "--read_kib must be 4 to --slot_kib, --slot_kib at most 65536, "
        "--threads 0 to 256, --slots 0 or 2 to 256, --streams, "
        "--direct_threads "
        "and --direct_depth 1 to 64, --bucket_mib >= 1");
  }
  transfer.cached_read_bytes = static_cast<uint64_t>(read_kib) << 10;
  transfer.cached_slot_bytes = static_cast<uint64_t>(slot_kib) << 10;
  options.bucket_bytes = static_cast<uint64_t>(bucket_mib) << 20;
  options.load.local_ranks = launch.local_size;
  options.load.is_cancelled = [] { return cli::InterruptSignal() != 0; };
  return options;
}

absl::StatusOr<std::string> FindModel() {
  const std::string model = absl::GetFlag(FLAGS_model_path);
  if (model.empty()) return cli::UsageError("--model_path is needed");
  const std::string subfolder = absl::GetFlag(FLAGS_subfolder);
  return cli::ResolvePath(
      subfolder.empty() ? model : absl::StrCat(model, "/", subfolder));
}

cli::Exit ExitFor(const WeightBenchResult& result) {
  for (const ModeResult& mode : result.modes) {
    for (const LoadSample& sample : mode.samples) {
      if (!sample.verified.value_or(true)) return cli::Exit::kFinding;
    }
  }
  return cli::Exit::kOk;
}

// The device of this rank, or nothing for the CPU.
absl::StatusOr<std::optional<int>> FindDevice(const Launch& launch) {
  FF_ASSIGN_OR_RETURN(cuda::DeviceSpec spec,
                      cuda::ParseDeviceSpec(absl::GetFlag(FLAGS_device)));
  if (spec.kind == cuda::DeviceKind::kCuda && spec.ordinal == 0 &&
      absl::GetFlag(FLAGS_device) == "cuda") {
    spec.ordinal = launch.local_rank;
  }
  FF_ASSIGN_OR_RETURN(spec, cuda::ResolveDevice(spec));
  if (spec.kind != cuda::DeviceKind::kCuda) return std::nullopt;
  if (absl::GetFlag(FLAGS_device) == "auto") {
    FF_ASSIGN_OR_RETURN(const int count, cuda::GetRuntime().DeviceCount());
    if (launch.local_rank >= count) {
      return absl::UnavailableError(absl::StrCat(
          "local rank ", launch.local_rank, " has no GPU: found ", count));
    }
    spec.ordinal = launch.local_rank;
  }
  return spec.ordinal;
}

absl::StatusOr<cli::Exit> Run(const cli::Arguments& arguments, cli::Io& io) {
  if (!arguments.empty()) {
    return cli::UsageError(
        absl::StrCat("unexpected argument '", arguments[0], "'"));
  }
  FF_ASSIGN_OR_RETURN(const std::string path, FindModel());
  FF_ASSIGN_OR_RETURN(const Launch launch, ReadLaunch(GetVariable));
  FF_ASSIGN_OR_RETURN(const std::optional<int> device, FindDevice(launch));
  FF_ASSIGN_OR_RETURN(WeightBenchOptions options,
                      ReadOptions(launch, device.has_value()));

  cuda::Runtime& runtime = cuda::GetRuntime();
  std::optional<cuda::Stream> stream;
  std::optional<cuda::DeviceProperties> properties;
  const Clock& clock = MonotonicClock::Get();
  const int64_t start = clock.NowNs();
  if (device) {
    FF_RETURN_IF_ERROR(runtime.SetDevice(*device));
    FF_ASSIGN_OR_RETURN(stream, cuda::Stream::Create());
    FF_ASSIGN_OR_RETURN(properties, runtime.GetProperties(*device));
    options.load.runtime = &runtime;
    options.load.device = *device;
    options.stream = &*stream;
  }
  const int64_t context_ready = clock.NowNs();
  GroupOptions group_options;
  group_options.timeout = absl::Seconds(absl::GetFlag(FLAGS_timeout));
  group_options.search =
      cuda::MakeLibrarySearch(GetVariable("VIRTUAL_ENV").value_or(""),
                              GetVariable("CONDA_PREFIX").value_or(""),
                              GetVariable("PATH").value_or(""));
  if (device) {
    group_options.runtime = &runtime;
    group_options.device = *device;
    group_options.stream = stream->handle();
  }
  FF_ASSIGN_OR_RETURN(const std::unique_ptr<Collective> group,
                      JoinGroup(launch, group_options));
  const int64_t joined = clock.NowNs();
  options.search = group_options.search;

  const bool is_root = group->rank() == 0;
  io.has_result = is_root;
  cli::Progress progress(io.err, io.progress && is_root, "weight_bench");
  std::string step;
  options.on_step = [&](const std::string& now) {
    step = now;
    progress.Update(0, step);
  };
  options.load.on_progress = [&](uint64_t done, uint64_t total) {
    progress.Update(
        total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total),
        step);
  };
  cli::CatchInterrupts();
  // A rank that cannot open the checkpoint says so to the others.
  const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(path);
  FF_RETURN_IF_ERROR(Agree(*group, checkpoint.status()));
  absl::StatusOr<WeightBenchResult> result =
      RunWeightBench(MakeLoadSource(*checkpoint), *group, options);
  if (!result.ok()) {
    group->Fail(result.status());
    if (group->size() == 1) return result.status();
    return Annotate(result.status(), absl::StrCat("rank ", group->rank()));
  }
  result->context_s = static_cast<double>(context_ready - start) * 1e-9;
  result->group_s = static_cast<double>(joined - context_ready) * 1e-9;
  progress.Clear();
  if (!is_root) return ExitFor(*result);

  WeightBenchContext context = ReadWeightBenchContext(path, properties);
  context.cache = options.cache;
  context.warmup = options.warmup;
  context.launch = launch;
  context.transport = std::string(group->transport());
  if (device) {
    if (auto versions = runtime.GetVersions(); versions.ok()) {
      context.versions = *versions;
    }
  }
  switch (io.format) {
    case cli::Format::kJson:
      WriteWeightBenchJson(*result, context, io.out);
      break;
    case cli::Format::kGithub:
      WriteWeightBenchGithub(*result, context, io.out);
      break;
    default:
      WriteWeightBenchText(*result, context, io.out);
  }
  return ExitFor(*result);
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  return firstframe::cli::Main(argc, argv, firstframe::Describe(),
                               firstframe::Run);
}
