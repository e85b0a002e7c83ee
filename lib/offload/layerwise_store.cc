#include "lib/offload/layerwise_store.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

// Returns the name up to its first component that is a number, or "".
absl::string_view BlockName(absl::string_view name) {
  size_t begin = 0;
  while (begin < name.size()) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const absl::string_view part = name.substr(begin, end - begin);
    if (begin > 0 && !part.empty() &&
        std::all_of(part.begin(), part.end(), absl::ascii_isdigit)) {
      return name.substr(0, end);
    }
    begin = end + 1;
  }
  return "";
}

}  // namespace

std::vector<ModuleBlock> FindBlocks(const OffloadModule& module) {
  std::vector<ModuleBlock> blocks;
  absl::flat_hash_map<absl::string_view, size_t> by_name;
  for (uint32_t i = 0; i < module.tensors().size(); ++i) {
    absl::string_view name = module.tensors()[i].name;
    absl::ConsumePrefix(&name, "buffer:");
    const absl::string_view block = BlockName(name);
    if (block.empty()) continue;
    const auto [it, is_new] = by_name.try_emplace(block, blocks.size());
    if (is_new) blocks.push_back({std::string(block), {}});
    blocks[it->second].tensors.push_back(i);
  }
  return blocks;
}

absl::StatusOr<std::unique_ptr<LayerwiseStore>> LayerwiseStore::Create(
    OffloadModule* module, std::optional<HostTier> tier, int device,
    cuda::Runtime* runtime, const PinOptions& options) {
  if (!module->Claim()) {
    return absl::FailedPreconditionError(
        "the module belongs to another store, which must let go of it first");
  }
  auto store =
      std::unique_ptr<LayerwiseStore>(new LayerwiseStore(module, runtime));
  store->blocks_ = FindBlocks(*module);
  if (store->blocks_.empty()) {
    return absl::InvalidArgumentError(
        "found no tensor with a number in its name, expected blocks such as "
        "'transformer_blocks.3'");
  }
  if (runtime == nullptr) return store;
  FF_ASSIGN_OR_RETURN(const CurrentDevice current,
                      CurrentDevice::Set(device, *runtime));
  if (tier.has_value()) {
    store->tier_ = *std::move(tier);
  } else {
    FF_ASSIGN_OR_RETURN(store->tier_, CopyToHost(*module, options, *runtime));
  }
  FF_RETURN_IF_ERROR(store->Prepare(device));
  return store;
}

LayerwiseStore::~LayerwiseStore() {
  if (lane_ != nullptr) {
    for (Slot& slot : slots_) {
      if (slot.block.has_value() && slot.is_acquired) {
        PointAtHost(layouts_[*slot.block]);
      }
    }
    PointAtHost(resident_layout_);
    lane_->stream.Synchronize().IgnoreError();
  }
  module_->Disclaim();
}

absl::Status LayerwiseStore::Prepare(int device) {
  std::vector<size_t> block_of(module_->tensors().size(), blocks_.size());
  for (size_t b = 0; b < blocks_.size(); ++b) {
    for (const uint32_t tensor : blocks_[b].tensors) block_of[tensor] = b;
  }
  std::vector<std::vector<uint32_t>> ranges(blocks_.size() + 1);
  for (uint32_t i = 0; i < tier_.ranges.size(); ++i) {
    const auto& members = tier_.ranges[i].members;
    const size_t block = block_of[members[0].tensor];
    for (const auto& member : members) {
      if (block_of[member.tensor] == block) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "tensors '", module_->tensors()[members[0].tensor].name, "' and '",
          module_->tensors()[member.tensor].name,
          "' share memory, expected blocks that can be moved apart"));
    }
    ranges[block].push_back(i);
  }
  const auto one_chunk = [&](std::vector<uint32_t> list) {
    constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max() / 2;
    auto chunks = PlanChunks(tier_, std::move(list), {kAny, kAny});
    return chunks.empty() ? ChunkLayout() : std::move(chunks[0]);
  };
  uint64_t largest = 0;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    layouts_.push_back(one_chunk(std::move(ranges[b])));
    largest = std::max(largest, layouts_.back().size_bytes);
  }
  resident_layout_ = one_chunk(std::move(ranges.back()));
  FF_ASSIGN_OR_RETURN(lane_, CopyLane::Create(device, *runtime_));
  for (Slot& slot : slots_) {
    FF_ASSIGN_OR_RETURN(slot.memory, LaneMemory::Allocate(largest, lane_));
    FF_ASSIGN_OR_RETURN(
        slot.copied,
        cuda::Event::Create(cuda::EventKind::kOrdering, *runtime_));
    FF_ASSIGN_OR_RETURN(
        slot.released,
        cuda::Event::Create(cuda::EventKind::kOrdering, *runtime_));
  }
  FF_ASSIGN_OR_RETURN(resident_,
                      LaneMemory::Allocate(resident_layout_.size_bytes, lane_));
  const std::vector<cuda::Copy> copies =
      MakeCopies(tier_, resident_layout_, resident_->buffer.data());
  FF_RETURN_IF_ERROR(lane_->stream.CopyBatchAsync(copies));
  for (const cuda::Copy& copy : copies) stats_.h2d_bytes += copy.size_bytes;
  FF_RETURN_IF_ERROR(lane_->stream.Synchronize());
  for (const ChunkLayout& layout : layouts_) PointAtHost(layout);
  Point(resident_layout_, resident_->buffer.data(), device, resident_);
  stats_.device_bytes = 2 * largest + resident_layout_.size_bytes;
  return absl::OkStatus();
}

void LayerwiseStore::Point(const ChunkLayout& layout, std::byte* base,
                           int device,
                           const std::shared_ptr<const void>& storage) {
  for (const PlacedRange& placed : layout.ranges) {
    for (const auto& member : tier_.ranges[placed.range].members) {
      OffloadTensor& tensor = module_->mutable_tensors()[member.tensor];
      tensor.data = base + placed.offset + member.offset;
      tensor.device = device;
      tensor.storage = storage;
    }
  }
}

void LayerwiseStore::PointAtHost(const ChunkLayout& layout) {
  for (const PlacedRange& placed : layout.ranges) {
    const StorageRange& range = tier_.ranges[placed.range];
    for (const auto& member : range.members) {
      OffloadTensor& tensor = module_->mutable_tensors()[member.tensor];
      tensor.data = range.data + member.offset;
      tensor.device = kHostMemory;
      tensor.storage = tier_.storage;
    }
  }
}

LayerwiseStore::Slot* LayerwiseStore::FindSlot(size_t block) {
  for (Slot& slot : slots_) {
    if (slot.block == block) return &slot;
  }
  return nullptr;
}

LayerwiseStore::Slot* LayerwiseStore::FindFree() {
  for (Slot& slot : slots_) {
    if (!slot.is_acquired) return &slot;
  }
  return nullptr;
}

absl::Status LayerwiseStore::Fill(Slot& slot, size_t block) {
  slot.block.reset();  // until all is enqueued
  if (slot.was_released) {
    FF_RETURN_IF_ERROR(slot.released->MakeWait(lane_->stream.handle()));
  }
  const std::vector<cuda::Copy> copies =
      MakeCopies(tier_, layouts_[block], slot.memory->buffer.data());
  FF_RETURN_IF_ERROR(lane_->stream.CopyBatchAsync(copies));
  for (const cuda::Copy& copy : copies) stats_.h2d_bytes += copy.size_bytes;
  FF_RETURN_IF_ERROR(slot.copied->Record(lane_->stream.handle()));
  slot.block = block;
  return absl::OkStatus();
}

absl::Status LayerwiseStore::CheckBlock(size_t block) const {
  if (block < blocks_.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "found block ", block, ", expected less than ", blocks_.size()));
}

absl::Status LayerwiseStore::Acquire(size_t block, cuda::StreamHandle compute) {
  FF_RETURN_IF_ERROR(CheckBlock(block));
  if (runtime_ == nullptr) return absl::OkStatus();
  FF_ASSIGN_OR_RETURN(const CurrentDevice current,
                      CurrentDevice::Set(lane_->device, *runtime_));
  if (tier_.check_unchanged) FF_RETURN_IF_ERROR(tier_.check_unchanged());
  Slot* slot = FindSlot(block);
  if (slot != nullptr) {
    ++stats_.prefetch_hits;
  } else {
    slot = FindFree();
    if (slot == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("block ", block,
                       ": both halves of the ring are acquired, expected a "
                       "Release before"));
    }
    ++stats_.prefetch_misses;
    FF_RETURN_IF_ERROR(Fill(*slot, block));
  }
  FF_RETURN_IF_ERROR(slot->copied->MakeWait(compute));
  slot->is_acquired = true;
  Point(layouts_[block], slot->memory->buffer.data(), lane_->device,
        slot->memory);
  const size_t next = (block + 1) % blocks_.size();
  Slot* const other = FindFree();
  if (other != nullptr && FindSlot(next) == nullptr) {
    FF_RETURN_IF_ERROR(Fill(*other, next));
  }
  return absl::OkStatus();
}

absl::Status LayerwiseStore::Release(size_t block, cuda::StreamHandle compute) {
  FF_RETURN_IF_ERROR(CheckBlock(block));
  if (runtime_ == nullptr) return absl::OkStatus();
  Slot* const slot = FindSlot(block);
  if (slot == nullptr || !slot->is_acquired) {
    return absl::FailedPreconditionError(
        absl::StrCat("block ", block, " is not acquired"));
  }
  FF_RETURN_IF_ERROR(slot->released->Record(compute));
  slot->was_released = true;
  slot->is_acquired = false;
  PointAtHost(layouts_[block]);
  return absl::OkStatus();
}

}  // namespace firstframe
