#include "lib/base/status_macros.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/stream.h"
#include "lib/load/tensor_hash_device.h"
#include "lib/load/tensor_hash_kernel.h"

namespace firstframe {

absl::Status SumChunksOnDevice(const std::byte* arena,
                               absl::Span<const HashChunk> chunks,
                               absl::Span<uint64_t> sums,
                               cuda::Runtime& runtime) {
  if (chunks.empty()) return absl::OkStatus();
  FF_ASSIGN_OR_RETURN(const cuda::Stream stream,
                      cuda::Stream::Create(0, runtime));
  FF_ASSIGN_OR_RETURN(
      const cuda::DeviceBuffer table,
      cuda::DeviceBuffer::Allocate(chunks.size() * sizeof(HashChunk), runtime));
  FF_ASSIGN_OR_RETURN(
      const cuda::DeviceBuffer result,
      cuda::DeviceBuffer::Allocate(sums.size() * sizeof(uint64_t), runtime));
  FF_RETURN_IF_ERROR(stream.CopyAsync(table.data(), chunks.data(),
                                      chunks.size() * sizeof(HashChunk)));
  FF_RETURN_IF_ERROR(
      stream.FillAsync(result.data(), 0, sums.size() * sizeof(uint64_t)));
  FF_RETURN_IF_ERROR(LaunchHashChunks(
      arena, reinterpret_cast<const HashChunk*>(table.data()),
      static_cast<int>(chunks.size()),
      reinterpret_cast<unsigned long long*>(result.data()), stream.handle()));
  FF_RETURN_IF_ERROR(stream.CopyAsync(sums.data(), result.data(),
                                      sums.size() * sizeof(uint64_t)));
  return stream.Synchronize();
}

}  // namespace firstframe
