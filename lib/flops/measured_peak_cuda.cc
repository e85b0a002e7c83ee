#include <cublas_v2.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/percentile.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/event.h"
#include "lib/cuda/known_libraries.h"
#include "lib/cuda/stream.h"
#include "lib/flops/measured_peak.h"

namespace firstframe {
namespace {

// As in cublas_api.h, whose C++ form is overloaded.
using GemmEx = cublasStatus_t(cublasHandle_t, cublasOperation_t,
                              cublasOperation_t, int, int, int, const void*,
                              const void*, cudaDataType, int, const void*,
                              cudaDataType, int, const void*, void*,
                              cudaDataType, int, cublasComputeType_t,
                              cublasGemmAlgo_t);

// The functions of cuBLAS that are used, found in the opened library.
struct Cublas {
  decltype(cublasCreate_v2)* create;
  decltype(cublasDestroy_v2)* destroy;
  decltype(cublasSetStream_v2)* set_stream;
  GemmEx* gemm;
};

absl::StatusOr<Cublas> OpenCublas(const cuda::LibrarySearch& search) {
  FF_ASSIGN_OR_RETURN(const cuda::DynamicLibrary library,
                      cuda::DynamicLibrary::Open(cuda::kCublas, search));
  Cublas cublas;
  FF_ASSIGN_OR_RETURN(cublas.create, library.Find<decltype(cublasCreate_v2)>(
                                         "cublasCreate_v2"));
  FF_ASSIGN_OR_RETURN(cublas.destroy, library.Find<decltype(cublasDestroy_v2)>(
                                          "cublasDestroy_v2"));
  FF_ASSIGN_OR_RETURN(
      cublas.set_stream,
      library.Find<decltype(cublasSetStream_v2)>("cublasSetStream_v2"));
  FF_ASSIGN_OR_RETURN(cublas.gemm, library.Find<GemmEx>("cublasGemmEx"));
  return cublas;
}

struct MathChoice {
  MathType math;
  cudaDataType_t type;
  cublasComputeType_t compute;
  size_t element_bytes;
};

constexpr MathChoice kChoices[] = {
    {MathType::kFp32, CUDA_R_32F, CUBLAS_COMPUTE_32F, 4},
    {MathType::kTf32, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4},
    {MathType::kBf16, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2},
    {MathType::kFp16, CUDA_R_16F, CUBLAS_COMPUTE_32F, 2},
};

// Uniform in -1 to 1 in the type's own bits; float16 by hand, since the host
// has no type for it: a sign, an exponent below 1 and a random fraction.
std::vector<unsigned char> RandomElements(const MathChoice& choice,
                                          size_t count) {
  std::vector<unsigned char> bytes(count * choice.element_bytes);
  std::mt19937 random(1);
  for (size_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(random()) / 2147483648.0f - 1.0f;
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if (choice.type == CUDA_R_16BF) bits >>= 16;
    if (choice.type == CUDA_R_16F) {
      const int exponent =
          std::max(0, static_cast<int>((bits >> 23) & 0xFF) - 127 + 15);
      bits = ((bits >> 16) & 0x8000) | static_cast<uint32_t>(exponent << 10) |
             ((bits >> 13) & 0x3FF);
    }
    std::memcpy(&bytes[i * choice.element_bytes], &bits, choice.element_bytes);
  }
  return bytes;
}

class Measurement {
 public:
  Measurement(const Cublas& cublas, cublasHandle_t handle,
              const cuda::Stream& stream, cuda::Runtime& runtime,
              const MeasureOptions& options)
      : cublas_(cublas),
        handle_(handle),
        stream_(stream),
        runtime_(runtime),
        options_(options) {}

  // `left`, `right` and `out` hold size^2 elements each.
  absl::Status Product(const MathChoice& choice, const void* left,
                       const void* right, void* out) const {
    const float one = 1;
    const float zero = 0;
    const int n = static_cast<int>(options_.size);
    const cublasStatus_t status =
        cublas_.gemm(handle_, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &one, left,
                     choice.type, n, right, choice.type, n, &zero, out,
                     choice.type, n, choice.compute, CUBLAS_GEMM_DEFAULT);
    if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(
        MathTypeName(choice.math), " product: cuBLAS status ", status));
  }

  // Runs `work` between two events and returns the device time.
  template <typename Work>
  absl::StatusOr<int64_t> TimeNs(const Work& work) const {
    FF_ASSIGN_OR_RETURN(
        cuda::Event start,
        cuda::Event::Create(cuda::EventKind::kTiming, runtime_));
    FF_ASSIGN_OR_RETURN(
        cuda::Event end,
        cuda::Event::Create(cuda::EventKind::kTiming, runtime_));
    FF_RETURN_IF_ERROR(start.Record(stream_.handle()));
    FF_RETURN_IF_ERROR(work());
    FF_RETURN_IF_ERROR(end.Record(stream_.handle()));
    FF_RETURN_IF_ERROR(stream_.Synchronize());
    return cuda::Event::ElapsedNs(start, end);
  }

  absl::StatusOr<MeasuredRate> Rate(const MathChoice& choice, void* left,
                                    void* right, void* out,
                                    MeasuredPeak& peak) const {
    const size_t count = static_cast<size_t>(options_.size * options_.size);
    const std::vector<unsigned char> elements = RandomElements(choice, count);
    for (void* matrix : {left, right}) {
      FF_RETURN_IF_ERROR(
          stream_.CopyAsync(matrix, elements.data(), elements.size()));
    }
    const auto products = [&]() -> absl::Status {
      for (int i = 0; i < options_.products; ++i) {
        FF_RETURN_IF_ERROR(Product(choice, left, right, out));
      }
      return absl::OkStatus();
    };
    FF_RETURN_IF_ERROR(products());  // loads kernels, raises clocks
    FF_RETURN_IF_ERROR(stream_.Synchronize());
    MeasuredRate rate;
    rate.math = choice.math;
    const double n = static_cast<double>(options_.size);
    for (int round = 0; round < options_.rounds; ++round) {
      const auto before = std::chrono::steady_clock::now();
      FF_ASSIGN_OR_RETURN(const int64_t ns, TimeNs(products));
      peak.wall_s += std::chrono::duration<double>(
                         std::chrono::steady_clock::now() - before)
                         .count();
      peak.event_s += static_cast<double>(ns) / 1e9;
      rate.samples_tflops.push_back(2 * n * n * n * options_.products /
                                    static_cast<double>(ns) / 1e3);
    }
    rate.best_tflops = *std::max_element(rate.samples_tflops.begin(),
                                         rate.samples_tflops.end());
    rate.median_tflops = Percentile(rate.samples_tflops, 50);
    return rate;
  }

  // Bytes a nanosecond, read and written.
  absl::StatusOr<double> CopyRate(void* to, const void* from,
                                  size_t size_bytes) const {
    double best = 0;
    for (int round = 0; round < options_.rounds; ++round) {
      FF_ASSIGN_OR_RETURN(const int64_t ns, TimeNs([&] {
                            return stream_.CopyAsync(to, from, size_bytes);
                          }));
      best = std::max(best, 2.0 * static_cast<double>(size_bytes) /
                                static_cast<double>(ns));
    }
    return best;
  }

 private:
  const Cublas& cublas_;
  const cublasHandle_t handle_;
  const cuda::Stream& stream_;
  cuda::Runtime& runtime_;
  const MeasureOptions& options_;
};

}  // namespace

absl::StatusOr<MeasuredPeak> MeasurePeak(cuda::Runtime& runtime,
                                         const cuda::LibrarySearch& search,
                                         const MeasureOptions& options) {
  constexpr int64_t kMaxSize = 32768;
  if (options.size < 16 || options.size > kMaxSize || options.rounds < 1 ||
      options.products < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "matrices of ", options.size, ", expected 16 to ", kMaxSize));
  }
  FF_ASSIGN_OR_RETURN(const int device, runtime.CurrentDevice());
  FF_RETURN_IF_ERROR(runtime.SetDevice(device));
  FF_ASSIGN_OR_RETURN(const cuda::DeviceProperties properties,
                      runtime.GetProperties(device));
  FF_ASSIGN_OR_RETURN(const Cublas cublas, OpenCublas(search));
  FF_ASSIGN_OR_RETURN(const cuda::Stream stream,
                      cuda::Stream::Create(0, runtime));
  cublasHandle_t handle = nullptr;
  if (cublas.create(&handle) != CUBLAS_STATUS_SUCCESS) {
    return absl::UnavailableError("cuBLAS could not be initialised");
  }
  const absl::Cleanup destroy = [&] { cublas.destroy(handle); };
  if (cublas.set_stream(handle, static_cast<cudaStream_t>(stream.handle())) !=
      CUBLAS_STATUS_SUCCESS) {
    return absl::InternalError("cuBLAS did not take the stream");
  }
  // The widest type decides.
  const size_t matrix_bytes =
      static_cast<size_t>(options.size * options.size) * 4;
  std::vector<void*> matrices;
  const absl::Cleanup free = [&] {
    for (void* matrix : matrices) runtime.Free(matrix).IgnoreError();
  };
  for (int i = 0; i < 3; ++i) {
    FF_ASSIGN_OR_RETURN(void* const matrix, runtime.Allocate(matrix_bytes));
    matrices.push_back(matrix);
  }
  MeasuredPeak peak;
  peak.device_name = properties.name;
  peak.size = options.size;
  const Measurement measurement(cublas, handle, stream, runtime, options);
  for (const MathChoice& choice : kChoices) {
    FF_ASSIGN_OR_RETURN(
        MeasuredRate rate,
        measurement.Rate(choice, matrices[0], matrices[1], matrices[2], peak));
    peak.rates.push_back(std::move(rate));
  }
  FF_ASSIGN_OR_RETURN(
      peak.copy_gb_per_s,
      measurement.CopyRate(matrices[1], matrices[0], matrix_bytes));
  return peak;
}

}  // namespace firstframe
