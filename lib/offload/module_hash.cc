#include "lib/offload/module_hash.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/base/sigbus_guard.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/stream.h"
#include "lib/load/tensor_hash.h"

namespace firstframe {
namespace {

constexpr uint64_t kPiece = 16 << 20;

}  // namespace

absl::StatusOr<std::vector<uint64_t>> HashModule(const OffloadModule& module,
                                                 cuda::Runtime* runtime) {
  std::vector<std::byte> block(kPiece);
  cuda::PinnedBuffer pinned;
  std::optional<cuda::Stream> stream;
  std::vector<uint64_t> hashes;
  for (const OffloadTensor& tensor : module.tensors()) {
    const bool on_host = tensor.device == kHostMemory;
    if (!on_host && !stream.has_value()) {
      FF_ASSIGN_OR_RETURN(stream, cuda::Stream::Create(0, *runtime));
      FF_ASSIGN_OR_RETURN(pinned,
                          cuda::PinnedBuffer::Allocate(kPiece, *runtime));
    }
    uint64_t sum = tensor.size_bytes;
    for (uint64_t at = 0; at < tensor.size_bytes; at += kPiece) {
      const uint64_t size = std::min(kPiece, tensor.size_bytes - at);
      std::byte* const piece = on_host ? block.data() : pinned.data();
      if (on_host) {
        if (!CopyFromMapping(piece, tensor.data + at, size)) {
          return absl::DataLossError(absl::StrCat(
              "tensor '", tensor.name, "': the file under it was cut"));
        }
      } else {
        FF_RETURN_IF_ERROR(stream->CopyAsync(piece, tensor.data + at, size));
        FF_RETURN_IF_ERROR(stream->Synchronize());
      }
      sum += HashTensorPart(at, absl::MakeConstSpan(piece, size));
    }
    hashes.push_back(sum);
  }
  return hashes;
}

}  // namespace firstframe
