#include "lib/offload/frozen_guard.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/run_threads.h"
#include "lib/base/sigbus_guard.h"
#include "lib/base/status_macros.h"
#include "lib/load/tensor_hash.h"
#include "lib/safetensors/finding.h"

namespace firstframe {
namespace {

constexpr uint64_t kBlock = 1 << 20;

// Nothing when the memory cannot be read: a mapped file that was cut.
std::optional<uint64_t> HashRange(const StorageRange& range) {
  thread_local std::vector<std::byte> block(kBlock);
  uint64_t sum = range.size_bytes;
  for (uint64_t at = 0; at < range.size_bytes; at += kBlock) {
    const uint64_t size = std::min(kBlock, range.size_bytes - at);
    if (!CopyFromMapping(block.data(), range.data + at, size)) {
      return std::nullopt;
    }
    sum += HashTensorPart(at, absl::MakeConstSpan(block.data(), size));
  }
  return sum;
}

}  // namespace

FrozenGuard::FrozenGuard(DeviceHash hash)
    : hash_(hash ? std::move(hash) : DeviceHash(HashDeviceArena)) {}

absl::Status FrozenGuard::HashTier(const HostTier& tier, int threads) {
  if (!host_hashes_.empty()) return absl::OkStatus();
  std::vector<uint64_t> hashes(tier.ranges.size());
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  const auto run = [&](int) {
    while (true) {
      const size_t i = next.fetch_add(1);
      if (i >= hashes.size()) return;
      const std::optional<uint64_t> hash = HashRange(tier.ranges[i]);
      if (!hash) failed = true;
      hashes[i] = hash.value_or(0);
    }
  };
  RunOnThreads(threads, run);
  if (failed) {
    return absl::FailedPreconditionError(
        "the host copy cannot be read: a file under it was cut");
  }
  host_hashes_ = std::move(hashes);
  return absl::OkStatus();
}

absl::Status FrozenGuard::Check(const OffloadModule& module,
                                const HostTier& tier,
                                absl::Span<const PlacedRange> ranges,
                                const std::byte* base, int threads,
                                cuda::Runtime& runtime) {
  FF_RETURN_IF_ERROR(HashTier(tier, threads));
  LoadPlan plan;
  for (const PlacedRange& placed : ranges) {
    PlannedTensor& tensor = plan.tensors.emplace_back();
    tensor.source.size_bytes = tier.ranges[placed.range].size_bytes;
    tensor.arena_offset = placed.offset;
  }
  FF_ASSIGN_OR_RETURN(const std::vector<uint64_t> hashes,
                      hash_(plan, base, runtime));
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (hashes[i] == host_hashes_[ranges[i].range]) continue;
    const StorageRange& range = tier.ranges[ranges[i].range];
    return absl::DataLossError(absl::StrCat(
        "tensor ", QuoteName(module.tensors()[range.members[0].tensor].name),
        ": found other bytes on the device than were loaded, expected a frozen "
        "module"));
  }
  return absl::OkStatus();
}

}  // namespace firstframe
