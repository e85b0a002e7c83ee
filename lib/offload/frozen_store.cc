#include "lib/offload/frozen_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/safetensors/finding.h"
#include "lib/timing/clock.h"

namespace firstframe {

FrozenStore::FrozenStore(OffloadModule* module, cuda::Runtime* runtime,
                         FrozenStoreOptions options)
    : module_(module),
      runtime_(runtime),
      options_(std::move(options)),
      guard_(options_.device_hash) {}

absl::StatusOr<std::unique_ptr<FrozenStore>> FrozenStore::Create(
    OffloadModule* module, cuda::Runtime* runtime,
    const FrozenStoreOptions& options) {
  if (!module->Claim()) {
    return absl::FailedPreconditionError(
        "the module belongs to another store, which must let go of it first");
  }
  return std::unique_ptr<FrozenStore>(
      new FrozenStore(module, runtime, options));
}

absl::StatusOr<std::unique_ptr<FrozenStore>> FrozenStore::CreateWithTier(
    OffloadModule* module, HostTier tier, cuda::Runtime* runtime,
    const FrozenStoreOptions& options) {
  FF_ASSIGN_OR_RETURN(auto store, Create(module, runtime, options));
  store->tier_ = std::move(tier);
  return store;
}

FrozenStore::~FrozenStore() {
  // The host copy may go with this object: nothing may still be reading it.
  if (lane_ != nullptr) lane_->stream.Synchronize().IgnoreError();
  module_->Disclaim();
}

absl::Status FrozenStore::Wait() {
  return lane_ == nullptr ? absl::OkStatus() : lane_->stream.Synchronize();
}

absl::Status FrozenStore::CheckPlaces() const {
  for (size_t i = 0; i < places_.size(); ++i) {
    const OffloadTensor& tensor = module_->tensors()[i];
    if (tensor.data == places_[i]) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "tensor ", QuoteName(tensor.name),
        ": found it pointed at other memory than the store gave it, expected "
        "a frozen module"));
  }
  return absl::OkStatus();
}

absl::Status FrozenStore::EnsureTier(cuda::StreamHandle compute) {
  if (!tier_.has_value()) {
    for (const OffloadTensor& tensor : module_->tensors()) {
      if (tensor.device == kHostMemory) continue;
      // Copied back below: what writes it must be done.
      FF_RETURN_IF_ERROR(runtime_->SynchronizeStream(compute));
      break;
    }
    FF_ASSIGN_OR_RETURN(tier_, CopyToHost(*module_, options_.pin, *runtime_));
    stats_.d2h_bytes += tier_->d2h_bytes;
  }
  if (!places_.empty()) return absl::OkStatus();
  for (const OffloadTensor& tensor : module_->tensors()) {
    places_.push_back(tensor.data);
  }
  return absl::OkStatus();
}

void FrozenStore::Point(uint32_t tensor, std::byte* data, int device,
                        std::shared_ptr<const void> storage) {
  OffloadTensor& target = module_->mutable_tensors()[tensor];
  target.data = data;
  target.device = device;
  target.storage = std::move(storage);
  places_[tensor] = data;
}

void FrozenStore::PointAtChunk(const Chunk& chunk) {
  for (const PlacedRange& placed : chunk.ranges) {
    std::byte* const data = chunk.memory->buffer.data() + placed.offset;
    for (const auto& member : tier_->ranges[placed.range].members) {
      Point(member.tensor, data + member.offset, chunk.memory->lane->device,
            chunk.memory);
    }
  }
}

void FrozenStore::PointAtHost() {
  for (const StorageRange& range : tier_->ranges) {
    for (const auto& member : range.members) {
      Point(member.tensor, range.data + member.offset, kHostMemory,
            tier_->storage);
    }
  }
}

// Enqueues the copies of `ranges` chunk by chunk: allocating one overlaps with
// the copies of those before. After an error the chunks go in the order of the
// lane, so after what was enqueued.
absl::StatusOr<std::vector<FrozenStore::Chunk>> FrozenStore::CopyIn(
    const std::vector<uint32_t>& ranges, cuda::StreamHandle compute) {
  std::vector<Chunk> chunks;
  uint64_t done = 0;
  const Clock& clock = MonotonicClock::Get();
  for (ChunkLayout& layout : PlanChunks(*tier_, ranges, options_.chunks)) {
    const int64_t start = clock.NowNs();
    absl::StatusOr<std::shared_ptr<LaneMemory>> memory =
        LaneMemory::Allocate(layout.size_bytes, lane_);
    FF_RETURN_IF_ERROR(Annotate(
        memory.status(),
        absl::StrCat("device ", lane_->device, " after ", done, " bytes")));
    const int64_t allocated = clock.NowNs();
    stats_.allocate_ns += allocated - start;
    chunks.push_back({*memory, layout.ranges});
    const std::vector<cuda::Copy> copies =
        MakeCopies(*tier_, layout, (*memory)->buffer.data());
    FF_RETURN_IF_ERROR(lane_->stream.CopyBatchAsync(copies));
    stats_.copies += copies.size();
    stats_.submit_ns += clock.NowNs() - allocated;
    done += layout.size_bytes;
  }
  FF_RETURN_IF_ERROR(lane_->MakeWait(compute));
  return chunks;
}

absl::Status FrozenStore::Load(int device, cuda::StreamHandle compute) {
  if (runtime_ == nullptr) return absl::OkStatus();
  const absl::Span<const OffloadTensor> tensors = module_->tensors();
  if (std::all_of(tensors.begin(), tensors.end(), [&](const auto& tensor) {
        return tensor.size_bytes == 0 || tensor.device == device;
      })) {
    return absl::OkStatus();
  }
  if (!chunks_.empty() && lane_->device != device) {
    return absl::FailedPreconditionError(
        absl::StrCat("the module is on device ", lane_->device,
                     ", expected an Unload before it goes to device ", device));
  }
  FF_ASSIGN_OR_RETURN(const CurrentDevice current,
                      CurrentDevice::Set(device, *runtime_));
  FF_RETURN_IF_ERROR(CheckPlaces());
  FF_RETURN_IF_ERROR(EnsureTier(compute));
  if (tier_->check_unchanged) FF_RETURN_IF_ERROR(tier_->check_unchanged());
  if (lane_ == nullptr || lane_->device != device) {
    FF_ASSIGN_OR_RETURN(lane_, CopyLane::Create(device, *runtime_));
  }
  std::vector<uint32_t> absent;
  for (uint32_t i = 0; i < tier_->ranges.size(); ++i) {
    if (tensors[tier_->ranges[i].members[0].tensor].device != device) {
      absent.push_back(i);
    }
  }
  absl::StatusOr<std::vector<Chunk>> chunks = CopyIn(absent, compute);
  if (!chunks.ok()) {
    // The tensors were not touched; the host copy must not go before what was
    // enqueued is done with it.
    lane_->stream.Synchronize().IgnoreError();
    return Annotate(chunks.status(), "the module stays where it was");
  }
  for (Chunk& chunk : *chunks) {
    PointAtChunk(chunk);
    for (const PlacedRange& placed : chunk.ranges) {
      stats_.h2d_bytes += tier_->ranges[placed.range].size_bytes;
    }
    stats_.device_bytes += chunk.memory->buffer.size_bytes();
    chunks_.push_back(std::move(chunk));
  }
  ++stats_.loads;
  return absl::OkStatus();
}

absl::Status FrozenStore::Unload(cuda::StreamHandle compute) {
  if (runtime_ == nullptr) return absl::OkStatus();
  int device = kHostMemory;
  for (const OffloadTensor& tensor : module_->tensors()) {
    if (tensor.size_bytes > 0) device = std::max(device, tensor.device);
  }
  if (device == kHostMemory) return absl::OkStatus();
  FF_ASSIGN_OR_RETURN(const CurrentDevice current,
                      CurrentDevice::Set(device, *runtime_));
  FF_RETURN_IF_ERROR(CheckPlaces());
  FF_RETURN_IF_ERROR(EnsureTier(compute));
  if (options_.guard && !chunks_.empty()) {
    FF_RETURN_IF_ERROR(runtime_->SynchronizeStream(compute));
    for (const Chunk& chunk : chunks_) {
      FF_RETURN_IF_ERROR(guard_.Check(*module_, *tier_, chunk.ranges,
                                      chunk.memory->buffer.data(),
                                      options_.pin.threads, *runtime_));
    }
  }
  if (!chunks_.empty()) FF_RETURN_IF_ERROR(lane_->WaitFor(compute));
  size_t ours = 0;
  for (const Chunk& chunk : chunks_) {
    ours += chunk.ranges.size();
    for (const PlacedRange& placed : chunk.ranges) {
      stats_.d2h_avoided_bytes += tier_->ranges[placed.range].size_bytes;
    }
  }
  if (ours < tier_->ranges.size()) {
    // Device memory that is not ours goes at once, in no stream's order.
    FF_RETURN_IF_ERROR(runtime_->SynchronizeStream(compute));
  }
  PointAtHost();
  chunks_.clear();  // freed in the lane's order, after `compute`
  stats_.device_bytes = 0;
  ++stats_.unloads;
  return absl::OkStatus();
}

}  // namespace firstframe
