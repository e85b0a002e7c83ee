#include "lib/offload/synthetic_module.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/load/memory_budget.h"
#include "lib/tensor/host_tensor.h"

namespace firstframe {
namespace {

absl::Status Append(std::string name, uint64_t size_bytes,
                    std::vector<OffloadTensor>& tensors) {
  const Shape shape = {static_cast<int64_t>(size_bytes / 2)};
  FF_ASSIGN_OR_RETURN(
      HostTensor data,
      HostTensor::Create(DType::kBF16, shape, HostTensor::Fill::kNone));
  // A multiplicative walk, so that no two tensors or places are alike.
  uint32_t value = static_cast<uint32_t>(tensors.size() + 1) * 2654435761u;
  for (uint16_t& element : data.mutable_data<uint16_t>()) {
    element = static_cast<uint16_t>(value >> 16);
    value = value * 1664525u + 1013904223u;
  }
  OffloadTensor tensor;
  tensor.name = std::move(name);
  tensor.dtype = DType::kBF16;
  tensor.shape = shape;
  tensor.size_bytes = data.size_bytes();
  auto storage = std::make_shared<HostTensor>(std::move(data));
  tensor.data = storage->mutable_bytes().data();
  tensor.storage = std::move(storage);
  tensors.push_back(std::move(tensor));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<OffloadModule>> MakeSyntheticModule(
    uint64_t size_bytes, uint64_t largest_bytes) {
  const struct {
    absl::string_view name;
    uint64_t size_bytes;
  } kBlock[] = {{"mlp.weight", largest_bytes},
                {"attn.q.weight", largest_bytes / 4},
                {"attn.k.weight", largest_bytes / 4},
                {"attn.v.weight", largest_bytes / 4},
                {"attn.o.weight", largest_bytes / 4},
                {"norm1.weight", 10240},
                {"norm1.bias", 10240},
                {"norm2.weight", 10240},
                {"mlp.bias", 40960}};
  FF_RETURN_IF_ERROR(ReadMemoryBudget().CheckRoom(size_bytes, "the module"));
  std::vector<OffloadTensor> tensors;
  uint64_t left = (size_bytes + 1) / 2 * 2;
  for (int block = 0; left > 0; ++block) {
    for (const auto& each : kBlock) {
      const uint64_t size = std::min(each.size_bytes / 2 * 2, left);
      if (size == 0) break;
      FF_RETURN_IF_ERROR(Append(absl::StrCat("blocks.", block, ".", each.name),
                                size, tensors));
      left -= size;
    }
  }
  return std::make_unique<OffloadModule>(std::move(tensors));
}

}  // namespace firstframe
