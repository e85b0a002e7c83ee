// The shared libraries that Firstframe opens when they are there.

#ifndef LIB_CUDA_KNOWN_LIBRARIES_H_
#define LIB_CUDA_KNOWN_LIBRARIES_H_

#include "absl/strings/string_view.h"
#include "lib/cuda/dynamic_library.h"

namespace firstframe::cuda {
namespace known_libraries_internal {

inline constexpr absl::string_view kDriverFiles[] = {"libcuda.so.1"};
inline constexpr absl::string_view kCublasFiles[] = {"libcublas.so.13",
                                                     "libcublas.so.12"};
inline constexpr absl::string_view kCublasLtFiles[] = {"libcublasLt.so.13",
                                                       "libcublasLt.so.12"};
inline constexpr absl::string_view kCudnnFiles[] = {"libcudnn.so.9"};
inline constexpr absl::string_view kNcclFiles[] = {"libnccl.so.2"};
inline constexpr absl::string_view kCuptiFiles[] = {"libcupti.so.13",
                                                    "libcupti.so.12"};
inline constexpr absl::string_view kCufileFiles[] = {"libcufile.so.0"};
inline constexpr absl::string_view kNvmlFiles[] = {"libnvidia-ml.so.1"};

}  // namespace known_libraries_internal

inline constexpr LibrarySpec kCudaDriver = {
    "the CUDA driver", known_libraries_internal::kDriverFiles, "libcuda1", ""};
inline constexpr LibrarySpec kCublas = {"cuBLAS",
                                        known_libraries_internal::kCublasFiles,
                                        "libcublas-13-0", "nvidia-cublas"};
inline constexpr LibrarySpec kCublasLt = {
    "cuBLASLt", known_libraries_internal::kCublasLtFiles, "libcublas-13-0",
    "nvidia-cublas"};
inline constexpr LibrarySpec kCudnn = {
    "cuDNN 9", known_libraries_internal::kCudnnFiles, "libcudnn9-cuda-13",
    "nvidia-cudnn-cu13"};
inline constexpr LibrarySpec kNccl = {"NCCL 2",
                                      known_libraries_internal::kNcclFiles,
                                      "libnccl2", "nvidia-nccl-cu13"};
inline constexpr LibrarySpec kCupti = {"CUPTI",
                                       known_libraries_internal::kCuptiFiles,
                                       "cuda-cupti-13-0", "nvidia-cuda-cupti"};
inline constexpr LibrarySpec kCufile = {"cuFile",
                                        known_libraries_internal::kCufileFiles,
                                        "libcufile-13-0", "nvidia-cufile"};
inline constexpr LibrarySpec kNvml = {
    "NVML", known_libraries_internal::kNvmlFiles, "libnvidia-ml1", ""};

}  // namespace firstframe::cuda

#endif  // LIB_CUDA_KNOWN_LIBRARIES_H_
