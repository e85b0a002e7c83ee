#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/tensor/device_gather.h"
#include "lib/tensor/gather_kernel.h"

namespace firstframe {

absl::Status GatherOnDevice(const void* data, const StridedShape& layout,
                            int64_t element_bytes, void* to, void* stream) {
  StridedShape fewest = Coalesce(layout.shape, layout.strides);
  element_bytes =
      Widen(element_bytes,
            reinterpret_cast<uintptr_t>(data) | reinterpret_cast<uintptr_t>(to),
            fewest);
  GatherLayout kernel_layout;
  if (fewest.shape.size() > kMaxGatherDimensions) {
    return absl::UnimplementedError(
        absl::StrCat("a tensor of ", fewest.shape.size(),
                     " dimensions that no stride joins, expected ",
                     kMaxGatherDimensions, " at most"));
  }
  kernel_layout.rank = static_cast<int>(fewest.shape.size());
  std::copy(fewest.shape.begin(), fewest.shape.end(), kernel_layout.shape);
  std::copy(fewest.strides.begin(), fewest.strides.end(),
            kernel_layout.strides);
  for (const int64_t size : fewest.shape) kernel_layout.count *= size;
  if (kernel_layout.count == 0) return absl::OkStatus();
  return LaunchGather(data, kernel_layout, element_bytes, to, stream);
}

}  // namespace firstframe
