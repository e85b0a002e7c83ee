// Picks the compiled kernel for a variant and launches it.

#include <algorithm>
#include <mutex>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "cuda.h"
#include "cuda_runtime_api.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/cuda_status.h"
#include "lib/wan_vae/cuda/conv_instances.h"
#include "lib/wan_vae/cuda/conv_portable.h"
#include "lib/wan_vae/cuda/kernels.h"

namespace firstframe::cuda {
namespace {

// The driver's own function, found through the runtime: nothing links libcuda.
absl::StatusOr<decltype(&cuTensorMapEncodeTiled)> TensorMapEncoder() {
  static const auto found =
      []() -> absl::StatusOr<decltype(&cuTensorMapEncodeTiled)> {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result;
    FF_CUDA_RETURN_IF_ERROR(
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                         12000, cudaEnableDefault, &result));
    if (function == nullptr || result != cudaDriverEntryPointSuccess) {
      return absl::UnavailableError(
          "the NVIDIA driver has no cuTensorMapEncodeTiled: install driver 525 "
          "or newer");
    }
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  return found;
}

// Describes the boxes that the kernel copies out of `pool`.
absl::StatusOr<CUtensorMap> EncodeMap(const FramePool& pool,
                                      const ConvInstance& instance) {
  FF_ASSIGN_OR_RETURN(const auto encode, TensorMapEncoder());
  const cuuint64_t element = pool.is_float ? 4 : 2;
  const cuuint64_t pitch = static_cast<cuuint64_t>(pool.pitch) * element;
  const cuuint64_t sizes[4] = {static_cast<cuuint64_t>(pool.channels),
                               static_cast<cuuint64_t>(pool.width),
                               static_cast<cuuint64_t>(pool.height),
                               static_cast<cuuint64_t>(pool.slots)};
  // Frames overlap in the map's eyes: a large one covers many slots.
  const cuuint64_t strides[3] = {
      pitch, pitch * pool.width,
      static_cast<cuuint64_t>(pool.slot_elements) * element};
  const cuuint32_t box[4] = {
      static_cast<cuuint32_t>(kWordsPerChunk * 4 / element),
      static_cast<cuuint32_t>(instance.window_columns),
      static_cast<cuuint32_t>(instance.window_rows), 1};
  const cuuint32_t steps[4] = {1, 1, 1, 1};
  CUtensorMap map;
  const CUresult result = encode(
      &map,
      pool.is_float ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                    : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
      4, pool.data, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    return absl::InternalError(
        absl::StrCat("cuTensorMapEncodeTiled: error ", static_cast<int>(result),
                     " for frames of ", pool.height, " x ", pool.width, " x ",
                     pool.channels));
  }
  return map;
}

const ConvInstance* FindInstance(const ConvVariant& variant) {
  switch (variant.mode) {
    case MathMode::kFp32:
      return FindFp32Instance(variant);
    case MathMode::kTf32:
      return FindTf32Instance(variant);
    case MathMode::kBf16:
      return FindBf16Instance(variant);
  }
  return nullptr;
}

// Shared memory past 48 KB must be asked for, once for each kernel and device.
absl::Status AllowSharedMemory(const ConvInstance& instance) {
  static absl::Mutex mutex;
  static auto* const allowed =
      new absl::flat_hash_set<std::pair<int, const void*>>;
  int device = 0;
  FF_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device));
  absl::MutexLock lock(&mutex);
  if (allowed->contains({device, instance.kernel})) return absl::OkStatus();
  FF_CUDA_RETURN_IF_ERROR(cudaFuncSetAttribute(
      instance.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
      instance.shared_bytes));
  allowed->insert({device, instance.kernel});
  return absl::OkStatus();
}

}  // namespace

absl::Status LaunchConv(const ConvVariant& variant, const FramePool& input,
                        ConvArguments arguments, int multiprocessors,
                        StreamHandle stream) {
  arguments.tiles_y = CeilDivide(arguments.height, TileHeight(variant));
  arguments.tiles_x = CeilDivide(arguments.width, kTileWidth);
  arguments.tiles_n = CeilDivide(arguments.out_channels, variant.tile_channels);
  if (variant.kind == ConvKernelKind::kPortable) {
    return LaunchPortableConv(variant, input, arguments, stream);
  }
  const ConvInstance* instance = FindInstance(variant);
  if (instance == nullptr) {
    return absl::InternalError(absl::StrCat(
        "no kernel for mode ", static_cast<int>(variant.mode), ", ",
        variant.tile_channels, " channels, window ", variant.window));
  }
  FF_RETURN_IF_ERROR(AllowSharedMemory(*instance));
  FF_ASSIGN_OR_RETURN(CUtensorMap map, EncodeMap(input, *instance));
  const int tiles = arguments.frames * arguments.tiles_y * arguments.tiles_x *
                    arguments.tiles_n;
  const int blocks = std::min(tiles, multiprocessors);
  void* parameters[] = {&map, &arguments};
  FF_CUDA_RETURN_IF_ERROR(cudaLaunchKernel(
      instance->kernel, dim3(blocks), dim3(instance->block_threads), parameters,
      instance->shared_bytes, static_cast<cudaStream_t>(stream)));
  return absl::OkStatus();
}

}  // namespace firstframe::cuda
