#include "lib/c_api/tensor.h"

#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "lib/base/status_macros.h"
#include "lib/c_api/border.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/runtime.h"
#include "lib/stats/compute.h"
#include "lib/stats/device_stats.h"
#include "lib/tensor/device_gather.h"
#include "lib/tensor/strides.h"
#include "lib/tensor/tensor.h"

namespace firstframe::c_api {
namespace {

constexpr int32_t kMaxDimensions = 64;  // as PyTorch

// The kernels' scratch memory, one for each stream that was ever used: kernels
// of one are in order, those of two would share it at the same time. Leaked, so
// that nothing of CUDA's runs at exit.
class DeviceScratch {
 public:
  static DeviceScratch& Get() {
    static DeviceScratch* const scratch = new DeviceScratch;
    return *scratch;
  }

  absl::StatusOr<PendingStats> Enqueue(const TensorArgument& tensor,
                                       const StatsRequest& request) {
    absl::MutexLock lock(&mutex_);
    std::unique_ptr<DeviceStats>& stats =
        by_stream_[{tensor.device, tensor.stream}];
    if (stats == nullptr) {
      FF_ASSIGN_OR_RETURN(stats, DeviceStats::Create());
    }
    return stats->Enqueue(tensor.data, tensor.dtype, tensor.numel, request,
                          tensor.stream);
  }

 private:
  absl::Mutex mutex_;
  std::map<std::pair<int32_t, void*>, std::unique_ptr<DeviceStats>> by_stream_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<TensorArgument> ReadTensor(const ff_tensor* tensor) {
  ff_tensor from;
  FF_RETURN_IF_ERROR(ReadStruct(tensor, "tensor", from));
  if (from.dtype < 0 || from.dtype >= kNumDTypes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor: dtype is ", from.dtype, ", expected one of ff_dtype"));
  }
  if (from.ndim < 0 || from.ndim > kMaxDimensions ||
      (from.ndim > 0 && from.shape == nullptr)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor: ndim is ", from.ndim,
                     ", expected 0 to 64 and a shape to go with it"));
  }
  TensorArgument result;
  result.data = static_cast<const std::byte*>(from.data);
  result.dtype = static_cast<DType>(from.dtype);
  result.shape.assign(from.shape, from.shape + from.ndim);
  const auto numel = CheckedNumElements(result.shape);
  if (!numel || !CheckedSizeBytes(result.dtype, result.shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor: shape ", ShapeToString(result.shape),
                     " is no whole number of bytes below 2^63"));
  }
  result.numel = *numel;
  if (result.numel > 0) FF_RETURN_IF_ERROR(NotNull(from.data, "tensor: data"));
  if (from.strides != nullptr) {
    const absl::Span<const int64_t> strides(from.strides, from.ndim);
    if (!IsRowMajor(result.shape, strides)) {
      result.strides.assign(strides.begin(), strides.end());
    }
  }
  result.device = from.device;
  result.stream = from.stream;
  return result;
}

namespace {

absl::StatusOr<int64_t> StridedElementBytes(const TensorArgument& tensor) {
  const int bits = DTypeBits(tensor.dtype);
  if (bits < 8) {
    return absl::UnimplementedError(
        absl::StrCat("strides of ", DTypeName(tensor.dtype)));
  }
  return bits / 8;
}

// A row-major copy, made and freed in the order of the tensor's stream.
absl::StatusOr<cuda::DeviceBuffer> GatherOnStream(
    const TensorArgument& tensor) {
  FF_ASSIGN_OR_RETURN(const int64_t element_bytes, StridedElementBytes(tensor));
  FF_ASSIGN_OR_RETURN(
      cuda::DeviceBuffer copy,
      cuda::DeviceBuffer::AllocateAsync(
          *CheckedSizeBytes(tensor.dtype, tensor.shape), tensor.stream));
  FF_RETURN_IF_ERROR(GatherOnDevice(tensor.data, {tensor.shape, tensor.strides},
                                    element_bytes, copy.data(), tensor.stream));
  return copy;
}

}  // namespace

absl::StatusOr<TensorStats> HostStats(const TensorArgument& tensor,
                                      const StatsRequest& request) {
  const int64_t size_bytes = *CheckedSizeBytes(tensor.dtype, tensor.shape);
  TensorView view = {tensor.dtype,
                     tensor.shape,
                     {tensor.data, static_cast<size_t>(size_bytes)}};
  std::vector<std::byte> copy;
  if (!tensor.strides.empty()) {
    FF_ASSIGN_OR_RETURN(const int64_t element_bytes,
                        StridedElementBytes(tensor));
    copy.resize(size_bytes);
    GatherRowMajor(tensor.data, tensor.shape, tensor.strides, element_bytes,
                   copy.data());
    view.bytes = copy;
  }
  return ComputeTensorStats(view, {.request = request});
}

absl::StatusOr<StatsPoll> EnqueueDeviceStats(const TensorArgument& tensor,
                                             const StatsRequest& request) {
  FF_ASSIGN_OR_RETURN(const DeviceScope scope,
                      DeviceScope::Enter(tensor.device));
  TensorArgument dense = tensor;
  cuda::DeviceBuffer copy;  // freed behind the kernels that read it
  if (!tensor.strides.empty()) {
    FF_ASSIGN_OR_RETURN(copy, GatherOnStream(tensor));
    dense.data = copy.data();
  }
  FF_ASSIGN_OR_RETURN(PendingStats enqueued,
                      DeviceScratch::Get().Enqueue(dense, request));
  auto pending = std::make_shared<PendingStats>(std::move(enqueued));
  return [pending](bool wait) -> absl::StatusOr<std::optional<TensorStats>> {
    if (!wait) {
      FF_ASSIGN_OR_RETURN(const bool ready, pending->IsReady());
      if (!ready) return std::nullopt;
    }
    FF_ASSIGN_OR_RETURN(const TensorStats stats, pending->Read());
    return stats;
  };
}

absl::StatusOr<DeviceScope> DeviceScope::Enter(int32_t device) {
  cuda::Runtime& runtime = cuda::GetRuntime();
  FF_ASSIGN_OR_RETURN(const int current, runtime.CurrentDevice());
  if (current == device) return DeviceScope(-1);
  FF_RETURN_IF_ERROR(runtime.SetDevice(device));
  return DeviceScope(current);
}

DeviceScope::DeviceScope(DeviceScope&& other) noexcept
    : previous_(std::exchange(other.previous_, -1)) {}

DeviceScope::~DeviceScope() {
  if (previous_ >= 0) cuda::GetRuntime().SetDevice(previous_).IgnoreError();
}

}  // namespace firstframe::c_api
