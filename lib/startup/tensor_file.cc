#include "lib/startup/tensor_file.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "lib/base/status_macros.h"
#include "lib/safetensors/checkpoint.h"
#include "lib/safetensors/writer.h"
#include "lib/tensor/convert.h"
#include "lib/tensor/host_tensor.h"
#include "lib/tensor/npy.h"
#include "lib/torch_file/torch_file.h"
#include "lib/wan_vae/wan_vae.h"

namespace firstframe {
namespace {

absl::StatusOr<FloatTensor> ToFloatTensor(const std::string& path,
                                          const TensorView& view) {
  FloatTensor tensor = {.shape = view.shape};
  tensor.values.resize(*CheckedNumElements(view.shape));
  FF_RETURN_IF_ERROR(Annotate(
      ConvertToFloat(view.dtype, view.bytes, absl::MakeSpan(tensor.values)),
      path));
  return tensor;
}

absl::StatusOr<FloatTensor> ReadFromSafetensors(const std::string& path,
                                                absl::string_view name) {
  FF_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(path));
  const CheckpointEntry* entry = checkpoint.Find(name);
  if (entry == nullptr && checkpoint.entries().size() == 1) {
    entry = &checkpoint.entries()[0];
  }
  if (entry == nullptr) {
    std::vector<std::string> names;
    for (const CheckpointEntry& each : checkpoint.entries()) {
      if (names.size() < 8) names.push_back(checkpoint.tensor(each).name);
    }
    return absl::NotFoundError(absl::StrCat(
        path, ": no tensor '", name, "' among ", checkpoint.entries().size(),
        " tensors (", absl::StrJoin(names, ", "), ")"));
  }
  FF_ASSIGN_OR_RETURN(const CheckpointReader reader,
                      CheckpointReader::Open(checkpoint));
  FF_ASSIGN_OR_RETURN(const HostTensor tensor, reader.Read(*entry));
  return ToFloatTensor(path, tensor.view());
}

}  // namespace

absl::Status ValidateTensorPath(absl::string_view path) {
  if (path.empty() || absl::EndsWith(path, ".safetensors") ||
      absl::EndsWith(path, ".npy") || absl::EndsWith(path, ".pt")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", path, "': expected a name that ends in .safetensors, .npy or .pt"));
}

absl::Status WriteTensorFile(const std::string& path, absl::string_view name,
                             const FloatTensor& tensor) {
  FF_RETURN_IF_ERROR(ValidateTensorPath(path));
  const TensorView view = ViewOf(tensor);
  if (absl::EndsWith(path, ".npy")) return WriteNpy(path, view);
  if (absl::EndsWith(path, ".pt")) return WriteTorchTensor(path, view);
  return WriteSafetensors(path, {{.name = std::string(name), .view = view}});
}

absl::StatusOr<FloatTensor> ReadTensorFile(const std::string& path,
                                           absl::string_view name) {
  if (absl::EndsWith(path, ".npy")) {
    FF_ASSIGN_OR_RETURN(const HostTensor tensor, ReadNpy(path));
    return ToFloatTensor(path, tensor.view());
  }
  if (absl::EndsWith(path, ".safetensors")) {
    return ReadFromSafetensors(path, name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": expected a .safetensors or .npy file"));
}

TensorDifference CompareTensors(const FloatTensor& actual,
                                const FloatTensor& expected,
                                const Tolerance& tolerance) {
  TensorDifference difference = {.expected_shape = expected.shape};
  if (actual.shape != expected.shape) return difference;
  difference.elements = static_cast<int64_t>(actual.values.size());
  double squares = 0;
  double error_squares = 0;
  for (size_t i = 0; i < actual.values.size(); ++i) {
    const double a = actual.values[i];
    const double e = expected.values[i];
    bool is_near = a == e || (std::isnan(a) && std::isnan(e));
    if (std::isfinite(a) && std::isfinite(e)) {
      const double error = std::abs(a - e);
      difference.max_abs = std::max(difference.max_abs, error);
      squares += e * e;
      error_squares += error * error;
      is_near = error <= tolerance.atol + tolerance.rtol * std::abs(e);
    }
    if (is_near) continue;
    if (difference.outside++ == 0) {
      difference.first_outside = static_cast<int64_t>(i);
    }
  }
  difference.relative_l2 = squares > 0 ? std::sqrt(error_squares / squares)
                                       : (error_squares > 0 ? INFINITY : 0);
  difference.is_equal = difference.outside == 0;
  return difference;
}

std::string TensorDifference::ToString() const {
  if (elements == 0 && !is_equal) {
    return absl::StrCat("other shape: the file's is ",
                        ShapeToString(expected_shape));
  }
  std::string text = absl::StrFormat(
      "relative L2 difference %.3g, largest %.3g; ", relative_l2, max_abs);
  if (is_equal) {
    return absl::StrCat(text, "all ", elements, " elements within tolerance");
  }
  return absl::StrCat(text, outside, " of ", elements,
                      " elements outside the tolerance, the first at ",
                      first_outside);
}

}  // namespace firstframe
