#include "lib/offload/module.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace firstframe {

uint64_t OffloadModule::size_bytes() const {
  uint64_t total = 0;
  for (const OffloadTensor& tensor : tensors_) total += tensor.size_bytes;
  return total;
}

std::vector<StorageRange> FindStorageRanges(const OffloadModule& module) {
  const absl::Span<const OffloadTensor> tensors = module.tensors();
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].size_bytes > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::make_tuple(tensors[a].device, tensors[a].data) <
           std::make_tuple(tensors[b].device, tensors[b].data);
  });
  std::vector<StorageRange> ranges;
  for (const uint32_t i : order) {
    const OffloadTensor& tensor = tensors[i];
    StorageRange* const last = ranges.empty() ? nullptr : &ranges.back();
    // Tensors that only touch are separate: a copy of one is not of the other.
    if (last != nullptr && last->device == tensor.device &&
        tensor.data < last->data + last->size_bytes) {
      const uint64_t end = tensor.data + tensor.size_bytes - last->data;
      last->size_bytes = std::max(last->size_bytes, end);
      last->members.push_back(
          {i, static_cast<uint64_t>(tensor.data - last->data)});
    } else {
      ranges.push_back(
          {tensor.data, tensor.size_bytes, tensor.device, {{i, 0}}});
    }
  }
  for (StorageRange& range : ranges) {
    std::sort(range.members.begin(), range.members.end(),
              [](const StorageRange::Member& a, const StorageRange::Member& b) {
                return a.tensor < b.tensor;
              });
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const StorageRange& a, const StorageRange& b) {
              return a.members.front().tensor < b.members.front().tensor;
            });
  return ranges;
}

}  // namespace firstframe
