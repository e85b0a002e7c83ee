// Writes .pt files that torch.load(weights_only=True) opens: a zip archive with
// a pickle (protocol 2) of the structure and one member for each storage.

#ifndef LIB_TORCH_FILE_TORCH_FILE_H_
#define LIB_TORCH_FILE_TORCH_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/safetensors/writer.h"
#include "lib/tensor/tensor.h"

namespace firstframe {

// Storages begin at this multiple of bytes in the file, as PyTorch's do.
inline constexpr size_t kTorchStorageAlignment = 64;

// Writes `view` alone: torch.load gives a tensor. InvalidArgument for element
// types that PyTorch lacks (F6); F4 becomes float4_e2m1fn_x2, two elements in
// each, so its last dimension must be even.
absl::Status WriteTorchTensor(const std::string& path, const TensorView& view);

// Writes `tensors` as a dict in their order. InvalidArgument for a name that
// comes twice.
absl::Status WriteTorchDict(const std::string& path,
                            absl::Span<const NamedTensor> tensors);

}  // namespace firstframe

#endif  // LIB_TORCH_FILE_TORCH_FILE_H_
