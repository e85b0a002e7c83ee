#include "lib/flops/model_layout.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "lib/flops/operator_cost.h"

namespace firstframe {

bool ModelLayout::Add(absl::string_view name, std::vector<int64_t> shape) {
  const auto [it, inserted] = index_.try_emplace(name, tensors_.size());
  if (inserted) tensors_.push_back({std::string(name), std::move(shape)});
  return inserted;
}

const std::vector<int64_t>* ModelLayout::Find(absl::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &tensors_[it->second].shape;
}

int64_t ModelLayout::Dim(absl::string_view name, size_t dimension) const {
  const std::vector<int64_t>* shape = Find(name);
  return shape && dimension < shape->size() ? (*shape)[dimension] : 0;
}

int64_t ModelLayout::Elements() const {
  int64_t total = 0;
  for (const Tensor& tensor : tensors_) {
    int64_t elements = 1;
    for (const int64_t size : tensor.shape) {
      elements = SaturatingProduct({elements, std::max<int64_t>(size, 0)});
    }
    total = SaturatingSum(total, elements);
  }
  return total;
}

int64_t ModelLayout::CountIndexed(absl::string_view prefix) const {
  int64_t count = 0;
  for (const Tensor& tensor : tensors_) {
    absl::string_view rest = tensor.name;
    if (!absl::ConsumePrefix(&rest, prefix)) continue;
    int64_t index;
    if (absl::SimpleAtoi(rest.substr(0, rest.find('.')), &index) &&
        index >= 0 && index < kSaturatedFlops) {
      count = std::max(count, index + 1);
    }
  }
  return count;
}

}  // namespace firstframe
