#include "lib/stats/stats_kernel.cuh"
#include "lib/stats/stats_kernel.h"
#include "lib/stats/stats_kernel_types.h"

namespace firstframe {

int64_t StatsScratchBytes() { return sizeof(internal::Scratch); }

absl::Status LaunchStats(const void* data, DType dtype, int64_t numel,
                         const StatsRequest& request, void* scratch,
                         void* stream) {
  using namespace internal;  // NOLINT: the element types
  Scratch* const s = static_cast<Scratch*>(scratch);
  const cudaStream_t on = static_cast<cudaStream_t>(stream);
  switch (dtype) {
    case DType::kBF16:
      return internal::LaunchStatsBf16(data, numel, request, scratch, stream);
    case DType::kF16:
      return internal::LaunchStatsF16(data, numel, request, scratch, stream);
    case DType::kF32:
      return internal::LaunchStatsF32(data, numel, request, scratch, stream);
    case DType::kF64:
      return LaunchAll<Plain<double>>(data, numel, s, on);
    case DType::kC64:
      return LaunchAll<C64>(data, numel, s, on);
    case DType::kF8E4M3:
      return LaunchAll<Bytes<FromFp8<__NV_E4M3>, uint8_t>>(data, numel, s, on);
    case DType::kF8E5M2:
      return LaunchAll<Bytes<FromFp8<__NV_E5M2>, uint8_t>>(data, numel, s, on);
    case DType::kBool:
      return LaunchAll<Bytes<FromBool, uint8_t>>(data, numel, s, on);
    case DType::kU8:
      return LaunchAll<Bytes<FromByte, uint8_t>>(data, numel, s, on);
    case DType::kI8:
      return LaunchAll<Bytes<FromSignedByte, int8_t>>(data, numel, s, on);
    case DType::kI16:
      return LaunchAll<Plain<int16_t>>(data, numel, s, on);
    case DType::kU16:
      return LaunchAll<Plain<uint16_t>>(data, numel, s, on);
    case DType::kI32:
      return LaunchAll<Plain<int32_t>>(data, numel, s, on);
    case DType::kU32:
      return LaunchAll<Plain<uint32_t>>(data, numel, s, on);
    case DType::kI64:
      return LaunchAll<Plain<int64_t>>(data, numel, s, on);
    case DType::kU64:
      return LaunchAll<Plain<uint64_t>>(data, numel, s, on);
    default:
      return absl::UnimplementedError("statistics on a device: this dtype");
  }
}

}  // namespace firstframe
