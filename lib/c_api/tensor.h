// A C caller's tensor, checked, and its statistics.

#ifndef LIB_C_API_TENSOR_H_
#define LIB_C_API_TENSOR_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "lib/c_api/firstframe.h"
#include "lib/stats/tensor_stats.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"

namespace firstframe::c_api {

struct TensorArgument {
  const std::byte* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<int64_t> strides;  // empty: row-major
  int64_t numel = 0;
  int32_t device = FF_HOST;
  void* stream = nullptr;
};

// InvalidArgument for a null pointer, an unknown dtype, a count that overflows.
// Strides that say row-major are dropped.
absl::StatusOr<TensorArgument> ReadTensor(const ff_tensor* tensor);

// Reads a host tensor; one that is not row-major is gathered first. Strides
// other than row-major are Unimplemented for types of less than a byte.
absl::StatusOr<TensorStats> HostStats(const TensorArgument& tensor,
                                      const StatsRequest& request);

// Enqueues a device tensor's statistics on its stream; the function returned
// gives them (see QueuedRecord). One that is not row-major is gathered first,
// in memory of the device's pool. Unimplemented as HostStats().
using StatsPoll =
    std::function<absl::StatusOr<std::optional<TensorStats>>(bool wait)>;
absl::StatusOr<StatsPoll> EnqueueDeviceStats(const TensorArgument& tensor,
                                             const StatsRequest& request);

// Makes `device` current on this thread for as long as it lives.
class DeviceScope {
 public:
  static absl::StatusOr<DeviceScope> Enter(int32_t device);
  DeviceScope(DeviceScope&& other) noexcept;
  DeviceScope& operator=(DeviceScope&&) = delete;
  ~DeviceScope();

 private:
  explicit DeviceScope(int previous) : previous_(previous) {}
  int previous_;  // -1: nothing to restore
};

}  // namespace firstframe::c_api

#endif  // LIB_C_API_TENSOR_H_
