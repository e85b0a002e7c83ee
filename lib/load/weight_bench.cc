#include "lib/load/weight_bench.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/percentile.h"
#include "lib/base/status_macros.h"
#include "lib/host/process.h"
#include "lib/load/choose_mode.h"
#include "lib/load/group_load.h"
#include "lib/load/run_load_mode.h"
#include "lib/load/tensor_hash.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

constexpr size_t kMaxWrongTensors = 8;

int64_t Now() { return MonotonicClock::Get().NowNs(); }
double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

std::vector<double> SecondsOf(const ModeResult& result) {
  std::vector<double> seconds;
  for (const LoadSample& sample : result.samples) {
    seconds.push_back(sample.seconds);
  }
  return seconds;
}

// Runs the samples of one checkpoint; keeps arenas between them, as PyTorch's
// caching allocator does.
class Bench {
 public:
  Bench(Collective& group, const WeightBenchOptions& options)
      : group_(group),
        options_(options),
        sole_host_(MakeSoleCollective(MemoryKind::kHost)) {}

  absl::Status Open(const LoadSource& source, WeightBenchResult* result);
  absl::StatusOr<ModeResult> RunMode(LoadMode mode);
  absl::StatusOr<Roofline> MeasureLimits(bool is_quick = false);
  // What "auto" stands for; measured once.
  absl::StatusOr<ModeChoice> Choose();
  const OpenedSources& sources() const { return device_loader_->sources(); }

 private:
  bool has_device() const { return options_.load.runtime != nullptr; }
  // Host memory is where "host" and "to_cpu" load to, device or not.
  bool IsToDevice(LoadMode mode) const {
    return has_device() && mode != LoadMode::kHost && mode != LoadMode::kToCpu;
  }
  CheckpointLoader& LoaderFor(LoadMode mode) {
    return IsToDevice(mode) || !host_loader_ ? *device_loader_ : *host_loader_;
  }

  std::string WhySkipped(LoadMode mode) const;
  absl::StatusOr<std::byte*> ArenaFor(LoadMode mode, LoadSample* sample);
  absl::Status Load(LoadMode mode, std::byte* arena, LoadSample* sample);
  absl::StatusOr<LoadSample> RunSample(LoadMode mode);
  absl::Status ShareTimes(int64_t ns, LoadSample* sample);
  absl::Status Verify(LoadMode mode, const std::byte* arena,
                      LoadSample* sample);
  absl::Status ClearArena(LoadMode mode, std::byte* arena);

  Collective& group_;
  const WeightBenchOptions& options_;
  const std::unique_ptr<Collective> sole_host_;
  std::optional<CheckpointLoader> device_loader_;  // or host, without a device
  std::optional<CheckpointLoader> host_loader_;
  HostArena host_arena_;
  cuda::DeviceBuffer device_arena_;
  std::vector<uint64_t> expected_;  // hashes of the files, once
  std::optional<ModeChoice> choice_;
  int64_t pin_ns_ = 0;  // of the sample that is running
};

absl::Status Bench::Open(const LoadSource& source, WeightBenchResult* result) {
  LoadOptions load = options_.load;
  load.on_phase = [this](const LoadPhase& phase) {
    if (phase.name == "pin") pin_ns_ += phase.end_ns - phase.start_ns;
  };
  const int64_t start = Now();
  FF_ASSIGN_OR_RETURN(device_loader_, CheckpointLoader::Create(source, load));
  result->plan_s = Seconds(Now() - start);
  if (has_device()) {
    load.runtime = nullptr;
    FF_ASSIGN_OR_RETURN(host_loader_, CheckpointLoader::Create(source, load));
  }
  const LoadPlan& plan = device_loader_->plan();
  result->tensors = plan.tensors.size();
  result->files = plan.paths.size();
  result->tensor_bytes = plan.tensor_bytes;
  result->ranks = group_.size();
  return absl::OkStatus();
}

std::string Bench::WhySkipped(LoadMode mode) const {
  const LoadModeInfo& info = GetLoadModeInfo(mode);
  if (info.needs_device && !has_device()) return "needs a device";
  if (mode == LoadMode::kShardAllgather && group_.size() == 1) {
    return "needs more than one rank";
  }
  return "";
}

absl::StatusOr<std::byte*> Bench::ArenaFor(LoadMode mode, LoadSample* sample) {
  const int64_t start = Now();
  const uint64_t size = GroupArenaBytes(device_loader_->plan(), group_.size());
  if (IsToDevice(mode)) {
    if (device_arena_.size_bytes() < size) {
      FF_ASSIGN_OR_RETURN(device_arena_, cuda::DeviceBuffer::Allocate(
                                             size, *options_.load.runtime));
      sample->allocate_s = Seconds(Now() - start);
    }
    return device_arena_.data();
  }
  if (host_arena_.size_bytes() < size) {
    FF_ASSIGN_OR_RETURN(host_arena_, HostArena::Allocate(size));
    host_arena_.Populate(device_loader_->options().transfer.cached_threads);
    sample->allocate_s = Seconds(Now() - start);
  }
  return host_arena_.data();
}

absl::Status Bench::Load(LoadMode mode, std::byte* arena, LoadSample* sample) {
  return RunLoadMode(mode, LoaderFor(mode), arena, IsToDevice(mode), group_,
                     options_, sample);
}

absl::Status Bench::ShareTimes(int64_t ns, LoadSample* sample) {
  FF_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      group_.Exchange(absl::StrCat(ns)));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    int64_t theirs = 0;
    if (!absl::SimpleAtoi(all[rank], &theirs)) {
      return absl::InternalError("a rank's time is malformed");
    }
    sample->rank_seconds.push_back(Seconds(theirs));
    if (sample->rank_seconds.back() > sample->seconds) {
      sample->seconds = sample->rank_seconds.back();
      sample->slowest_rank = static_cast<int>(rank);
    }
  }
  return absl::OkStatus();
}

absl::Status Bench::Verify(LoadMode mode, const std::byte* arena,
                           LoadSample* sample) {
  const int64_t start = Now();
  CheckpointLoader& loader = LoaderFor(mode);
  const int threads = loader.options().transfer.cached_threads;
  if (expected_.empty()) {
    FF_ASSIGN_OR_RETURN(expected_, HashFiles(loader.plan(), threads));
  }
  std::vector<uint64_t> found;
  if (IsToDevice(mode)) {
    FF_ASSIGN_OR_RETURN(
        found, HashDeviceArena(loader.plan(), arena, *options_.load.runtime));
  } else {
    found = HashHostArena(loader.plan(), arena, threads);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == expected_[i]) continue;
    sample->wrong_tensors.push_back(loader.plan().tensors[i].source.name);
    if (sample->wrong_tensors.size() == kMaxWrongTensors) break;
  }
  FF_ASSIGN_OR_RETURN(
      const std::vector<std::string> all,
      group_.Exchange(sample->wrong_tensors.empty() ? "" : "differs"));
  sample->verified = std::all_of(all.begin(), all.end(),
                                 [](const auto& s) { return s.empty(); });
  sample->verify_s = Seconds(Now() - start);
  return absl::OkStatus();
}

// So that a verdict cannot come from what an earlier sample left there.
absl::Status Bench::ClearArena(LoadMode mode, std::byte* arena) {
  const uint64_t size = device_loader_->plan().arena_bytes;
  if (!IsToDevice(mode)) {
    std::fill_n(arena, size, std::byte{0xA5});
    return absl::OkStatus();
  }
  FF_RETURN_IF_ERROR(options_.stream->FillAsync(arena, 0xA5, size));
  return options_.stream->Synchronize();
}

absl::StatusOr<LoadSample> Bench::RunSample(LoadMode mode) {
  LoadSample sample;
  // One rank prepares the cache of the machine it shares with others; several
  // machines have a rank each that does.
  absl::StatusOr<Residency> before = PrepareCache(sources(), options_.cache);
  FF_RETURN_IF_ERROR(Agree(group_, before.status()));
  sample.resident_before = before->fraction();
  FF_ASSIGN_OR_RETURN(std::byte* const arena, ArenaFor(mode, &sample));
  const bool checks = options_.verify && mode != LoadMode::kToCpu;
  if (checks) FF_RETURN_IF_ERROR(ClearArena(mode, arena));
  if (IsToDevice(mode)) {
    FF_RETURN_IF_ERROR(options_.load.runtime->SynchronizeDevice());
  }
  pin_ns_ = 0;
  const int64_t resident = ReadResourceUsage().max_resident_bytes;
  FF_RETURN_IF_ERROR(Barrier(group_));
  const int64_t start = Now();
  FF_RETURN_IF_ERROR(Load(mode, arena, &sample));
  if (IsToDevice(mode)) {
    FF_RETURN_IF_ERROR(options_.load.runtime->SynchronizeDevice());
  }
  // The ring is pinned once per process; that time is a phase of its own.
  const int64_t elapsed = Now() - start - pin_ns_;
  sample.pin_s += Seconds(pin_ns_);
  sample.host_bytes_added = ReadResourceUsage().max_resident_bytes - resident;
  FF_RETURN_IF_ERROR(ShareTimes(elapsed, &sample));
  sample.resident_after = sources().ProbeAll().fraction();
  if (checks) FF_RETURN_IF_ERROR(Verify(mode, arena, &sample));
  return sample;
}

absl::StatusOr<ModeResult> Bench::RunMode(LoadMode mode) {
  ModeResult result;
  result.mode = mode;
  result.skipped = WhySkipped(mode);
  if (!result.skipped.empty()) return result;
  const int rounds = options_.warmup + options_.repeats;
  for (int round = 0; round < rounds; ++round) {
    const int repeat = round - options_.warmup;
    if (options_.on_step) {
      options_.on_step(absl::StrCat(
          GetLoadModeInfo(mode).name,
          repeat < 0 ? " warm-up"
                     : absl::StrCat(" ", repeat + 1, "/", options_.repeats)));
    }
    if (options_.before_sample) {
      FF_RETURN_IF_ERROR(options_.before_sample(mode, repeat));
    }
    absl::StatusOr<LoadSample> sample = RunSample(mode);
    if (absl::IsUnavailable(sample.status()) && group_.size() == 1) {
      result.skipped = std::string(sample.status().message());
      result.samples.clear();
      return result;
    }
    if (!sample.ok()) {
      group_.Fail(sample.status());
      return Annotate(sample.status(), GetLoadModeInfo(mode).name);
    }
    if (repeat >= 0) result.samples.push_back(*std::move(sample));
  }
  return result;
}

absl::StatusOr<Roofline> Bench::MeasureLimits(bool is_quick) {
  LoadSample unused;
  RooflineOptions options;
  options.is_quick = is_quick;
  options.stream = options_.stream;
  options.measure_direct = true;
  if (!is_quick || !has_device()) {
    FF_ASSIGN_OR_RETURN(options.host_arena, ArenaFor(LoadMode::kHost, &unused));
  }
  if (has_device()) {
    FF_ASSIGN_OR_RETURN(options.device_arena,
                        ArenaFor(LoadMode::kIndependent, &unused));
  }
  return MeasureRoofline(*device_loader_, group_, options);
}

absl::StatusOr<ModeChoice> Bench::Choose() {
  if (choice_) return *choice_;
  if (options_.on_step) options_.on_step("auto");
  const int64_t start = Now();
  FF_ASSIGN_OR_RETURN(const Roofline roofline, MeasureLimits(true));
  ModeChoice mine = ChooseLoadMode(roofline, group_.size(), has_device(),
                                   sources().ProbeAll().fraction().value_or(1));
  // Every rank measured its own; rank 0's verdict holds for all.
  FF_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      group_.Exchange(GetLoadModeInfo(mine.mode).name));
  FF_ASSIGN_OR_RETURN(const std::vector<LoadMode> parsed,
                      ParseLoadModes(all[0]));
  mine.mode = parsed[0];
  absl::StrAppend(&mine.why, absl::StrFormat("; measured in %.2f s",
                                             Seconds(Now() - start)));
  choice_ = std::move(mine);
  return *choice_;
}

}  // namespace

double ModeResult::BestSeconds() const {
  const std::vector<double> seconds = SecondsOf(*this);
  return *std::min_element(seconds.begin(), seconds.end());
}

double ModeResult::MedianSeconds() const {
  return Percentile(SecondsOf(*this), 50);
}

double ModeResult::MeanSeconds() const {
  const std::vector<double> seconds = SecondsOf(*this);
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) /
         static_cast<double>(seconds.size());
}

absl::StatusOr<WeightBenchResult> RunWeightBench(
    const LoadSource& source, Collective& group,
    const WeightBenchOptions& options) {
  WeightBenchResult result;
  if (options.load.runtime != nullptr) {
    const int64_t start = Now();
    FF_RETURN_IF_ERROR(options.load.runtime->SetDevice(options.load.device));
    FF_RETURN_IF_ERROR(options.load.runtime->SynchronizeDevice());
    result.context_s = Seconds(Now() - start);
  }
  Bench bench(group, options);
  FF_RETURN_IF_ERROR(Agree(group, bench.Open(source, &result)));
  result.residency = bench.sources().ProbeAll();
  for (const LoadMode mode : options.modes) {
    ModeChoice choice = {.mode = mode, .why = ""};
    if (mode == LoadMode::kAuto) {
      FF_ASSIGN_OR_RETURN(choice, bench.Choose());
    }
    FF_ASSIGN_OR_RETURN(ModeResult mode_result, bench.RunMode(choice.mode));
    mode_result.chosen_because = choice.why;
    for (const LoadSample& sample : mode_result.samples) {
      if (!sample.cufile.empty()) result.cufile = sample.cufile;
    }
    result.modes.push_back(std::move(mode_result));
  }
  if (options.roofline) {
    FF_ASSIGN_OR_RETURN(result.roofline, bench.MeasureLimits());
    for (ModeResult& mode : result.modes) {
      if (mode.samples.empty()) continue;
      const bool to_device = options.load.runtime != nullptr &&
                             mode.mode != LoadMode::kHost &&
                             mode.mode != LoadMode::kToCpu;
      mode.limit =
          LimitFor(mode.mode, *result.roofline, group.size(), to_device,
                   mode.samples[0].resident_before.value_or(1));
    }
  }
  return result;
}

}  // namespace firstframe
