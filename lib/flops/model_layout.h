// Names and shapes of a model's tensors: what a safetensors header holds, and
// all that the cost models need when there is no config.

#ifndef LIB_FLOPS_MODEL_LAYOUT_H_
#define LIB_FLOPS_MODEL_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace firstframe {

// Tensors in file order, found by name. Thread-compatible.
class ModelLayout {
 public:
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
  };

  // Returns false, and changes nothing, when the name is already there.
  bool Add(absl::string_view name, std::vector<int64_t> shape);

  const std::vector<Tensor>& tensors() const { return tensors_; }
  // The shape of `name`, or nullptr.
  const std::vector<int64_t>* Find(absl::string_view name) const;
  // Size of one dimension; 0 when the tensor or the dimension is missing.
  int64_t Dim(absl::string_view name, size_t dimension) const;
  // Number of elements of all tensors; saturates at INT64_MAX.
  int64_t Elements() const;
  // One more than the largest i for which a tensor is called
  // "prefix" + i + ".anything"; 0 when none is.
  int64_t CountIndexed(absl::string_view prefix) const;

 private:
  std::vector<Tensor> tensors_;
  absl::flat_hash_map<std::string, size_t> index_;
};

}  // namespace firstframe

#endif  // LIB_FLOPS_MODEL_LAYOUT_H_
