#include "lib/offload/roundtrip.h"

#include <stdlib.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/stream.h"
#include "lib/offload/copy_lane.h"

namespace firstframe {
namespace {

// As a fresh CPU tensor has: 64 bytes aligned, untouched pages.
absl::StatusOr<std::shared_ptr<std::byte>> AllocatePageable(uint64_t size) {
  void* data = nullptr;
  if (::posix_memalign(&data, 64, size) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no host memory for ", size, " bytes"));
  }
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(data), ::free);
}

}  // namespace

absl::Status MoveModule(OffloadModule& module, int device,
                        cuda::Runtime& runtime) {
  for (const StorageRange& range : FindStorageRanges(module)) {
    if (range.device == device) continue;
    const int gpu = device == kHostMemory ? range.device : device;
    FF_ASSIGN_OR_RETURN(const CurrentDevice current,
                        CurrentDevice::Set(gpu, runtime));
    FF_ASSIGN_OR_RETURN(std::shared_ptr<CopyLane> lane,
                        CopyLane::Create(gpu, runtime));
    std::byte* data = nullptr;
    std::shared_ptr<const void> storage;
    if (device == kHostMemory) {
      FF_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> host,
                          AllocatePageable(range.size_bytes));
      data = host.get();
      storage = std::move(host);
    } else {
      FF_ASSIGN_OR_RETURN(std::shared_ptr<LaneMemory> memory,
                          LaneMemory::Allocate(range.size_bytes, lane));
      data = memory->buffer.data();
      storage = std::move(memory);
    }
    FF_RETURN_IF_ERROR(
        lane->stream.CopyAsync(data, range.data, range.size_bytes));
    FF_RETURN_IF_ERROR(lane->stream.Synchronize());
    for (const StorageRange::Member& member : range.members) {
      OffloadTensor& tensor = module.mutable_tensors()[member.tensor];
      tensor.data = data + member.offset;
      tensor.device = device;
      tensor.storage = storage;
    }
  }
  return absl::OkStatus();
}

}  // namespace firstframe
