#include "lib/offload/offload_cycler.h"

#include <optional>

#include "lib/base/status_macros.h"
#include "lib/offload/host_tier.h"
#include "lib/offload/layerwise_store.h"
#include "lib/offload/roundtrip.h"
#include "lib/offload/synthetic_module.h"

namespace firstframe {
namespace {

void DescribeTier(const HostTier& tier, StrategyResult& result) {
  result.pinned_bytes = tier.pinned_bytes;
  result.pageable_bytes = tier.pageable_bytes;
  result.mapped_bytes = tier.mapped_bytes;
  result.populate_ns = tier.populate_ns;
  result.fill_ns = tier.fill_ns;
  result.pin_ns = tier.pin_ns;
  result.degraded = tier.degraded;
}

class FrozenCycler final : public OffloadCycler {
 public:
  static absl::StatusOr<std::unique_ptr<OffloadCycler>> Create(
      std::unique_ptr<OffloadModule> module, std::optional<HostTier> tier,
      int device, const FrozenStoreOptions& options, cuda::Runtime* runtime) {
    auto cycler = std::unique_ptr<FrozenCycler>(
        new FrozenCycler(std::move(module), device));
    auto store =
        tier.has_value()
            ? FrozenStore::CreateWithTier(cycler->module_.get(),
                                          *std::move(tier), runtime, options)
            : FrozenStore::Create(cycler->module_.get(), runtime, options);
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
      : OffloadCycler(std::move(module)), device_(device) {}
  const int device_;
  uint64_t device_bytes_ = 0;
  std::unique_ptr<FrozenStore> store_;  // goes before the module
};

class RoundtripCycler final : public OffloadCycler {
 public:
  RoundtripCycler(std::unique_ptr<OffloadModule> module, int device,
                  cuda::Runtime* runtime)
      : OffloadCycler(std::move(module)), device_(device), runtime_(runtime) {
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

class LayerwiseCycler final : public OffloadCycler {
 public:
  static absl::StatusOr<std::unique_ptr<OffloadCycler>> Create(
      std::unique_ptr<OffloadModule> module, std::optional<HostTier> tier,
      int device, const FrozenStoreOptions& options, cuda::Runtime* runtime) {
    auto cycler = std::unique_ptr<LayerwiseCycler>(
        new LayerwiseCycler(std::move(module)));
    FF_ASSIGN_OR_RETURN(
        cycler->store_,
        LayerwiseStore::Create(cycler->module_.get(), std::move(tier), device,
                               runtime, options.pin));
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
      : OffloadCycler(std::move(module)) {}
  std::unique_ptr<LayerwiseStore> store_;  // goes before the module
};

}  // namespace

absl::StatusOr<std::unique_ptr<OffloadCycler>> MakeOffloadCycler(
    OffloadStrategy strategy, const OffloadSource& source, int device,
    const FrozenStoreOptions& options, cuda::Runtime* runtime) {
  std::unique_ptr<OffloadModule> module;
  std::optional<HostTier> tier;
  const bool wants_pinned = strategy == OffloadStrategy::kFrozen ||
                            strategy == OffloadStrategy::kLayerwise;
  if (strategy == OffloadStrategy::kMapped) {
    if (source.checkpoint == nullptr) {
      return absl::UnavailableError("it needs a checkpoint in files");
    }
    FF_ASSIGN_OR_RETURN(HostModule mapped,
                        MapToHost(*source.checkpoint, options.pin, runtime));
    module = std::move(mapped.module);
    tier = std::move(mapped.tier);
  } else if (source.checkpoint != nullptr) {
    FF_ASSIGN_OR_RETURN(HostModule read,
                        ReadToHost(*source.checkpoint, options.pin,
                                   wants_pinned ? runtime : nullptr));
    module = std::move(read.module);
    if (wants_pinned && runtime != nullptr) tier = std::move(read.tier);
  } else {
    FF_ASSIGN_OR_RETURN(module, MakeSyntheticModule(source.synthetic_bytes));
  }
  switch (strategy) {
    case OffloadStrategy::kFrozen:
    case OffloadStrategy::kMapped:
      return FrozenCycler::Create(std::move(module), std::move(tier), device,
                                  options, runtime);
    case OffloadStrategy::kLayerwise:
      return LayerwiseCycler::Create(std::move(module), std::move(tier), device,
                                     options, runtime);
    case OffloadStrategy::kRoundtrip:
      break;
  }
  return std::make_unique<RoundtripCycler>(std::move(module), device, runtime);
}

}  // namespace firstframe
