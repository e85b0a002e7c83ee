#include "lib/offload/host_tier.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/run_threads.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/stream.h"
#include "lib/load/load_source.h"
#include "lib/load/loader.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

constexpr uint64_t kAlignment = 256;  // of a tensor: see lib/load/plan.h

uint64_t AlignUp(uint64_t value) {
  return (value + kAlignment - 1) / kAlignment * kAlignment;
}

// memcpy of several ranges, on several threads, in parts of a few MiB.
void CopyInParallel(const std::vector<cuda::Copy>& copies, int threads) {
  constexpr size_t kPart = 4 << 20;
  std::vector<cuda::Copy> parts;
  for (const cuda::Copy& copy : copies) {
    for (size_t at = 0; at < copy.size_bytes; at += kPart) {
      parts.push_back({static_cast<std::byte*>(copy.to) + at,
                       static_cast<const std::byte*>(copy.from) + at,
                       std::min(kPart, copy.size_bytes - at)});
    }
  }
  std::atomic<size_t> next = 0;
  const auto run = [&](int) {
    while (true) {
      const size_t i = next.fetch_add(1);
      if (i >= parts.size()) return;
      std::memcpy(parts[i].to, parts[i].from, parts[i].size_bytes);
    }
  };
  RunOnThreads(threads, run);
}

absl::Status CopyFromDevices(const std::vector<cuda::Copy>& copies,
                             cuda::Runtime& runtime) {
  if (copies.empty()) return absl::OkStatus();
  FF_ASSIGN_OR_RETURN(const cuda::Stream stream,
                      cuda::Stream::Create(0, runtime));
  for (const cuda::Copy& copy : copies) {
    FF_RETURN_IF_ERROR(stream.CopyAsync(copy.to, copy.from, copy.size_bytes));
  }
  return stream.Synchronize();
}

// What an arena with several owners needs: itself and the storages adopted.
struct Held {
  PinnedArena arena;
  std::vector<std::shared_ptr<const void>> adopted;
};

void TakePinning(const PinnedArena& arena, HostTier& tier) {
  tier.pinned_bytes = arena.region().pinned_bytes();
  tier.pageable_bytes += arena.size_bytes() - tier.pinned_bytes;
  tier.cuts = arena.region().cuts();
  tier.populate_ns = arena.populate_ns();
  tier.pin_ns = arena.pin_ns();
  if (!arena.region().note().empty()) {
    tier.degraded.push_back(arena.region().note());
  }
}

}  // namespace

absl::StatusOr<HostTier> CopyToHost(const OffloadModule& module,
                                    const PinOptions& options,
                                    cuda::Runtime& runtime) {
  HostTier tier;
  tier.ranges = FindStorageRanges(module);
  auto held = std::make_shared<Held>();
  std::vector<StorageRange*> moving;
  uint64_t size = 0;
  for (StorageRange& range : tier.ranges) {
    if (!options.pin && range.device == kHostMemory) {
      tier.pageable_bytes += range.size_bytes;
      for (const StorageRange::Member& member : range.members) {
        held->adopted.push_back(module.tensors()[member.tensor].storage);
      }
    } else {
      moving.push_back(&range);
      size = AlignUp(size) + range.size_bytes;
    }
  }
  FF_ASSIGN_OR_RETURN(held->arena, PinnedArena::Create(size, options.threads));
  const int64_t start = MonotonicClock::Get().NowNs();
  std::vector<cuda::Copy> from_host, from_device;
  uint64_t at = 0;
  for (StorageRange* range : moving) {
    at = AlignUp(at);
    std::byte* const target = held->arena.data() + at;
    const bool is_on_host = range->device == kHostMemory;
    (is_on_host ? from_host : from_device)
        .push_back({target, range->data, range->size_bytes});
    if (!is_on_host) tier.d2h_bytes += range->size_bytes;
    range->data = target;
    range->device = kHostMemory;
    at += range->size_bytes;
  }
  CopyInParallel(from_host, options.threads);
  tier.fill_ns = MonotonicClock::Get().NowNs() - start;
  // Pinned before a device writes to it: twice as fast.
  held->arena.Pin(options, runtime);
  const int64_t pinned = MonotonicClock::Get().NowNs();
  FF_RETURN_IF_ERROR(CopyFromDevices(from_device, runtime));
  tier.fill_ns += MonotonicClock::Get().NowNs() - pinned;
  TakePinning(held->arena, tier);
  tier.is_arena = held->adopted.empty();
  tier.storage = std::move(held);
  return tier;
}

absl::StatusOr<HostModule> ReadToHost(const Checkpoint& checkpoint,
                                      const PinOptions& options,
                                      cuda::Runtime* runtime) {
  FF_ASSIGN_OR_RETURN(
      CheckpointLoader loader,
      CheckpointLoader::Create(MakeLoadSource(checkpoint), LoadOptions()));
  auto held = std::make_shared<Held>();
  FF_ASSIGN_OR_RETURN(
      held->arena,
      PinnedArena::Create(loader.plan().arena_bytes, options.threads));
  HostModule result;
  const int64_t start = MonotonicClock::Get().NowNs();
  FF_ASSIGN_OR_RETURN(const LoadReport report,
                      loader.LoadAll(held->arena.data()));
  result.tier.fill_ns = MonotonicClock::Get().NowNs() - start;
  result.tier.degraded = report.degraded;
  if (runtime != nullptr) held->arena.Pin(options, *runtime);
  std::vector<OffloadTensor> tensors;
  for (LoadedTensor& tensor : TensorsIn(loader.plan(), held->arena.data())) {
    tensors.push_back({std::move(tensor.name), tensor.dtype,
                       std::move(tensor.shape), tensor.size_bytes, tensor.data,
                       kHostMemory, held});
  }
  TakePinning(held->arena, result.tier);
  result.tier.is_arena = true;
  result.module = std::make_unique<OffloadModule>(std::move(tensors));
  result.tier.ranges = FindStorageRanges(*result.module);
  result.tier.storage = std::move(held);
  return result;
}

}  // namespace firstframe
