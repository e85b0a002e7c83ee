#include "lib/offload/offload_bench.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/stream.h"
#include "lib/host/process.h"
#include "lib/offload/copy_lane.h"
#include "lib/offload/layerwise_store.h"
#include "lib/offload/module_hash.h"
#include "lib/offload/roundtrip.h"
#include "lib/offload/synthetic_module.h"
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

// One way of moving a module back and forth.
class Cycler {
 public:
  virtual ~Cycler() = default;
  virtual absl::Status Load() = 0;    // until it is there
  virtual absl::Status Unload() = 0;  // until the caller may go on
  virtual absl::Status Settle() { return absl::OkStatus(); }
  // Sets h2d_bytes and the like to the totals so far.
  virtual OffloadSample Totals() const = 0;
  virtual void Describe(StrategyResult& result) const = 0;
  OffloadModule& module() { return *module_; }

 protected:
  explicit Cycler(std::unique_ptr<OffloadModule> module)
      : module_(std::move(module)) {}
  std::unique_ptr<OffloadModule> module_;
};

void DescribeTier(const HostTier& tier, StrategyResult& result) {
  result.pinned_bytes = tier.pinned_bytes;
  result.pageable_bytes = tier.pageable_bytes;
  result.mapped_bytes = tier.mapped_bytes;
  result.populate_ns = tier.populate_ns;
  result.fill_ns = tier.fill_ns;
  result.pin_ns = tier.pin_ns;
  result.degraded = tier.degraded;
}

class FrozenCycler final : public Cycler {
 public:
  static absl::StatusOr<std::unique_ptr<Cycler>> Create(
      std::unique_ptr<OffloadModule> module, std::optional<HostTier> tier,
      const OffloadBenchOptions& options, cuda::Runtime* runtime) {
    auto cycler = std::unique_ptr<FrozenCycler>(
        new FrozenCycler(std::move(module), options.device));
    auto store = tier.has_value() ? FrozenStore::CreateWithTier(
                                        cycler->module_.get(), *std::move(tier),
                                        runtime, options.store)
                                  : FrozenStore::Create(cycler->module_.get(),
                                                        runtime, options.store);
    FF_RETURN_IF_ERROR(store.status());
    cycler->store_ = *std::move(store);
    return cycler;
  }
  absl::Status Load() override {
    FF_RETURN_IF_ERROR(store_->Load(device_));
    FF_RETURN_IF_ERROR(store_->Wait());
    device_bytes_ = store_->stats().device_bytes;
    return absl::OkStatus();
  }
  absl::Status Unload() override { return store_->Unload(); }
  absl::Status Settle() override { return store_->Wait(); }
  OffloadSample Totals() const override {
    OffloadSample totals;
    totals.h2d_bytes = store_->stats().h2d_bytes;
    totals.d2h_bytes = store_->stats().d2h_bytes;
    totals.d2h_avoided_bytes = store_->stats().d2h_avoided_bytes;
    totals.allocate_ns = store_->stats().allocate_ns;
    totals.submit_ns = store_->stats().submit_ns;
    return totals;
  }
  void Describe(StrategyResult& result) const override {
    if (store_->tier() != nullptr) DescribeTier(*store_->tier(), result);
    result.device_bytes = device_bytes_;
    const FrozenStoreStats& stats = store_->stats();
    if (stats.loads > 0) result.copies = stats.copies / stats.loads;
  }

 private:
  FrozenCycler(std::unique_ptr<OffloadModule> module, int device)
      : Cycler(std::move(module)), device_(device) {}
  const int device_;
  uint64_t device_bytes_ = 0;
  std::unique_ptr<FrozenStore> store_;  // goes before the module
};

class RoundtripCycler final : public Cycler {
 public:
  RoundtripCycler(std::unique_ptr<OffloadModule> module, int device,
                  cuda::Runtime* runtime)
      : Cycler(std::move(module)), device_(device), runtime_(runtime) {
    for (const StorageRange& range : FindStorageRanges(*module_)) {
      size_bytes_ += range.size_bytes;
    }
  }
  absl::Status Load() override {
    if (runtime_ == nullptr) return absl::OkStatus();
    totals_.h2d_bytes += size_bytes_;
    return MoveModule(*module_, device_, *runtime_);
  }
  absl::Status Unload() override {
    if (runtime_ == nullptr) return absl::OkStatus();
    totals_.d2h_bytes += size_bytes_;
    return MoveModule(*module_, kHostMemory, *runtime_);
  }
  OffloadSample Totals() const override { return totals_; }
  void Describe(StrategyResult& result) const override {
    if (runtime_ == nullptr) return;
    result.pageable_bytes = size_bytes_;
    result.device_bytes = size_bytes_;
  }

 private:
  const int device_;
  cuda::Runtime* const runtime_;
  uint64_t size_bytes_ = 0;
  OffloadSample totals_;
};

class LayerwiseCycler final : public Cycler {
 public:
  static absl::StatusOr<std::unique_ptr<Cycler>> Create(
      std::unique_ptr<OffloadModule> module, std::optional<HostTier> tier,
      const OffloadBenchOptions& options, cuda::Runtime* runtime) {
    auto cycler = std::unique_ptr<LayerwiseCycler>(
        new LayerwiseCycler(std::move(module)));
    FF_ASSIGN_OR_RETURN(
        cycler->store_,
        LayerwiseStore::Create(cycler->module_.get(), std::move(tier),
                               options.device, runtime, options.store.pin));
    return cycler;
  }
  absl::Status Load() override {
    for (size_t i = 0; i < store_->blocks().size(); ++i) {
      FF_RETURN_IF_ERROR(store_->Acquire(i));
      FF_RETURN_IF_ERROR(store_->Release(i));
    }
    return store_->Wait();
  }
  absl::Status Unload() override { return absl::OkStatus(); }
  OffloadSample Totals() const override {
    OffloadSample totals;
    totals.h2d_bytes = store_->stats().h2d_bytes;
    totals.d2h_avoided_bytes = totals.h2d_bytes;
    return totals;
  }
  void Describe(StrategyResult& result) const override {
    DescribeTier(store_->tier(), result);
    result.device_bytes = store_->stats().device_bytes;
  }

 private:
  explicit LayerwiseCycler(std::unique_ptr<OffloadModule> module)
      : Cycler(std::move(module)) {}
  std::unique_ptr<LayerwiseStore> store_;  // goes before the module
};

absl::StatusOr<std::unique_ptr<Cycler>> MakeCycler(
    OffloadStrategy strategy, const OffloadSource& source,
    const OffloadBenchOptions& options, cuda::Runtime* runtime) {
  std::unique_ptr<OffloadModule> module;
  std::optional<HostTier> tier;
  const bool wants_pinned = strategy == OffloadStrategy::kFrozen ||
                            strategy == OffloadStrategy::kLayerwise;
  if (strategy == OffloadStrategy::kMapped) {
    if (source.checkpoint == nullptr) {
      return absl::UnavailableError("it needs a checkpoint in files");
    }
    if (runtime == nullptr) return absl::UnavailableError("it needs a device");
    FF_ASSIGN_OR_RETURN(
        HostModule mapped,
        MapToHost(*source.checkpoint, options.store.pin, *runtime));
    module = std::move(mapped.module);
    tier = std::move(mapped.tier);
  } else if (source.checkpoint != nullptr) {
    FF_ASSIGN_OR_RETURN(HostModule read,
                        ReadToHost(*source.checkpoint, options.store.pin,
                                   wants_pinned ? runtime : nullptr));
    module = std::move(read.module);
    if (wants_pinned && runtime != nullptr) tier = std::move(read.tier);
  } else {
    FF_ASSIGN_OR_RETURN(module, MakeSyntheticModule(source.synthetic_bytes));
  }
  switch (strategy) {
    case OffloadStrategy::kFrozen:
    case OffloadStrategy::kMapped:
      return FrozenCycler::Create(std::move(module), std::move(tier), options,
                                  runtime);
    case OffloadStrategy::kLayerwise:
      return LayerwiseCycler::Create(std::move(module), std::move(tier),
                                     options, runtime);
    case OffloadStrategy::kRoundtrip:
      break;
  }
  return std::make_unique<RoundtripCycler>(std::move(module), options.device,
                                           runtime);
}

absl::StatusOr<OffloadSample> RunCycle(Cycler& cycler) {
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
absl::StatusOr<bool> Verify(Cycler& cycler, const std::vector<uint64_t>& truth,
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
  auto cycler = MakeCycler(strategy, source, options, runtime);
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
    absl::SleepFor(options.rest);
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

absl::string_view OffloadStrategyName(OffloadStrategy strategy) {
  switch (strategy) {
    case OffloadStrategy::kFrozen:
      return "frozen";
    case OffloadStrategy::kRoundtrip:
      return "roundtrip";
    case OffloadStrategy::kMapped:
      return "mapped";
    case OffloadStrategy::kLayerwise:
      return "layerwise";
  }
  return "";
}

std::optional<OffloadStrategy> ParseOffloadStrategy(absl::string_view name) {
  for (const OffloadStrategy strategy :
       {OffloadStrategy::kFrozen, OffloadStrategy::kRoundtrip,
        OffloadStrategy::kMapped, OffloadStrategy::kLayerwise}) {
    if (OffloadStrategyName(strategy) == name) return strategy;
  }
  return std::nullopt;
}

double OffloadBenchResult::limit_gb_per_s() const {
  if (pinned_h2d_gb_per_s.empty()) return 0;
  return *std::max_element(pinned_h2d_gb_per_s.begin(),
                           pinned_h2d_gb_per_s.end());
}

absl::StatusOr<OffloadBenchResult> RunOffloadBench(
    const OffloadSource& source, const OffloadBenchOptions& options,
    cuda::Runtime* runtime) {
  OffloadBenchResult result;
  result.is_identity = runtime == nullptr;
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
