#include "lib/offload/offload_bench.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/stream.h"
#include "lib/host/process.h"
#include "lib/offload/module.h"
#include "lib/offload/module_hash.h"
#include "lib/offload/pinned_arena.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

int64_t Now() { return MonotonicClock::Get().NowNs(); }

// The best of a few rounds of copies of one pinned block, or of what can be
// pinned of it; of none where that is next to nothing.
absl::StatusOr<std::optional<double>> MeasurePinnedCopy(
    size_t block_bytes, const PinOptions& pin, cuda::Runtime& runtime) {
  constexpr int kCopies = 4;
  constexpr size_t kLeastBlock = 1 << 20;  // less measures submission
  FF_ASSIGN_OR_RETURN(const cuda::Stream stream,
                      cuda::Stream::Create(0, runtime));
  FF_ASSIGN_OR_RETURN(PinnedArena host, PinnedArena::Create(block_bytes, 4));
  PinOptions bounded;  // --nopin is about the module's copy
  bounded.budget_bytes = pin.budget_bytes;
  host.Pin(bounded, runtime);
  block_bytes = std::min<size_t>(block_bytes, host.region().pinned_bytes());
  if (block_bytes < kLeastBlock) return std::nullopt;
  FF_ASSIGN_OR_RETURN(const cuda::DeviceBuffer device,
                      cuda::DeviceBuffer::Allocate(block_bytes, runtime));
  FF_RETURN_IF_ERROR(stream.CopyAsync(device.data(), host.data(), block_bytes));
  FF_RETURN_IF_ERROR(stream.Synchronize());
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    const int64_t start = Now();
    for (int i = 0; i < kCopies; ++i) {
      FF_RETURN_IF_ERROR(
          stream.CopyAsync(device.data(), host.data(), block_bytes));
    }
    FF_RETURN_IF_ERROR(stream.Synchronize());
    const int64_t spent = std::max<int64_t>(1, Now() - start);
    best = std::max(best, double{kCopies} * block_bytes / spent);
  }
  return best;
}

absl::StatusOr<OffloadSample> RunCycle(OffloadCycler& cycler) {
  const OffloadSample before = cycler.Totals();
  OffloadSample sample;
  const int64_t start = Now();
  FF_RETURN_IF_ERROR(cycler.Load());
  const int64_t loaded = Now();
  FF_RETURN_IF_ERROR(cycler.Unload());
  const int64_t unloaded = Now();
  FF_RETURN_IF_ERROR(cycler.Settle());
  sample.load_ns = loaded - start;
  sample.unload_ns = unloaded - loaded;
  sample.settle_ns = Now() - unloaded;
  const OffloadSample after = cycler.Totals();
  sample.h2d_bytes = after.h2d_bytes - before.h2d_bytes;
  sample.d2h_bytes = after.d2h_bytes - before.d2h_bytes;
  sample.d2h_avoided_bytes = after.d2h_avoided_bytes - before.d2h_avoided_bytes;
  sample.allocate_ns = after.allocate_ns - before.allocate_ns;
  sample.submit_ns = after.submit_ns - before.submit_ns;
  return sample;
}

// Loads and unloads once more and hashes the tensors in both places.
absl::StatusOr<bool> Verify(OffloadCycler& cycler,
                            const std::vector<uint64_t>& truth,
                            cuda::Runtime* runtime) {
  FF_RETURN_IF_ERROR(cycler.Load());
  FF_ASSIGN_OR_RETURN(const auto loaded, HashModule(cycler.module(), runtime));
  FF_RETURN_IF_ERROR(cycler.Unload());
  FF_RETURN_IF_ERROR(cycler.Settle());
  FF_ASSIGN_OR_RETURN(const auto back, HashModule(cycler.module(), runtime));
  return loaded == truth && back == truth;
}

absl::Status CheckGoOn(const OffloadBenchOptions& options) {
  if (options.is_cancelled && options.is_cancelled()) {
    return absl::CancelledError("the benchmark was cancelled");
  }
  return absl::OkStatus();
}

absl::StatusOr<StrategyResult> RunStrategy(OffloadStrategy strategy,
                                           const OffloadSource& source,
                                           const OffloadBenchOptions& options,
                                           cuda::Runtime* runtime,
                                           OffloadBenchResult& all,
                                           double progress) {
  StrategyResult result;
  result.strategy = strategy;
  auto cycler = MakeOffloadCycler(strategy, source, options.device,
                                  options.store, runtime);
  if (absl::IsUnavailable(cycler.status()) ||
      absl::IsInvalidArgument(cycler.status())) {
    result.skipped = std::string(cycler.status().message());
    return result;
  }
  FF_RETURN_IF_ERROR(cycler.status());
  OffloadModule& module = (*cycler)->module();
  all.tensors = module.tensors().size();
  all.tensor_bytes = module.size_bytes();
  std::vector<uint64_t> truth;
  if (options.verify) {
    FF_ASSIGN_OR_RETURN(truth, HashModule(module, runtime));
  }
  for (int cycle = 0; cycle < options.cycles; ++cycle) {
    FF_RETURN_IF_ERROR(CheckGoOn(options));
    FF_ASSIGN_OR_RETURN(OffloadSample sample, RunCycle(**cycler));
    result.samples.push_back(sample);
    if (runtime != nullptr) absl::SleepFor(options.rest);
    if (cycle == 0 || cycle + 1 == options.cycles) {
      const int which = cycle == 0 ? 0 : 1;
      result.resident_bytes[which] = ReadResidentBytes();
      if (runtime != nullptr) {
        FF_ASSIGN_OR_RETURN(const cuda::MemoryInfo memory,
                            runtime->GetMemoryInfo());
        result.device_free_bytes[which] = memory.free_bytes;
      }
    }
    if (options.on_progress) {
      options.on_progress(progress + (cycle + 1.0) / options.cycles /
                                         options.strategies.size());
    }
  }
  if (options.cycles == 1) {
    result.resident_bytes[1] = result.resident_bytes[0];
    result.device_free_bytes[1] = result.device_free_bytes[0];
  }
  (*cycler)->Describe(result);
  if (options.verify) {
    FF_ASSIGN_OR_RETURN(result.verified, Verify(**cycler, truth, runtime));
  }
  return result;
}

}  // namespace

absl::StatusOr<OffloadBenchResult> RunOffloadBench(
    const OffloadSource& source, const OffloadBenchOptions& options,
    cuda::Runtime* runtime) {
  OffloadBenchResult result;
  result.is_identity = runtime == nullptr;
  result.rest = options.rest;
  const auto measure = [&]() -> absl::Status {
    if (runtime == nullptr) return absl::OkStatus();
    FF_ASSIGN_OR_RETURN(const std::optional<double> rate,
                        MeasurePinnedCopy(options.limit_block_bytes,
                                          options.store.pin, *runtime));
    if (rate.has_value()) result.pinned_h2d_gb_per_s.push_back(*rate);
    return absl::OkStatus();
  };
  if (runtime != nullptr)
    FF_RETURN_IF_ERROR(runtime->SetDevice(options.device));
  FF_RETURN_IF_ERROR(measure());
  for (size_t i = 0; i < options.strategies.size(); ++i) {
    FF_ASSIGN_OR_RETURN(
        StrategyResult strategy,
        RunStrategy(options.strategies[i], source, options, runtime, result,
                    static_cast<double>(i) / options.strategies.size()));
    result.strategies.push_back(std::move(strategy));
  }
  FF_RETURN_IF_ERROR(measure());
  return result;
}

}  // namespace firstframe
