// Writes safetensors files: byte for byte what the reference writes for the
// same tensors and metadata, streamed, and never half there.

#ifndef LIB_SAFETENSORS_WRITER_H_
#define LIB_SAFETENSORS_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/base/output_file.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"
#include "lib/tensor/tensor.h"

namespace firstframe {

struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
};

using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

// Where each tensor goes, and the bytes in front of the data.
struct SafetensorsPlan {
  struct Tensor {
    TensorSpec spec;
    uint64_t begin = 0;  // in the data buffer
    uint64_t size_bytes = 0;
  };
  std::vector<Tensor> tensors;  // in the order of their data
  std::string prefix;           // 8 bytes of length and the header
  uint64_t data_size = 0;
};

// Orders `specs` by element type, the largest alignment first, then by name,
// and writes the header, padded with spaces to a multiple of 8 so that the data
// begin aligned. InvalidArgument for a name or metadata key that comes twice,
// is not UTF-8, holds NUL or is "__metadata__", for a shape without a size, and
// for a header over kMaxHeaderSize.
absl::StatusOr<SafetensorsPlan> PlanSafetensors(
    std::vector<TensorSpec> specs, const SafetensorsMetadata& metadata = {});

// Movable, thread-compatible. The file appears at Finish()
// (lib/base/output_file).
class SafetensorsWriter {
 public:
  // Writes the header. Errors of PlanSafetensors, and errno's codes.
  static absl::StatusOr<SafetensorsWriter> Create(
      const std::string& path, std::vector<TensorSpec> specs,
      const SafetensorsMetadata& metadata = {});

  // Writes a whole tensor. Tensors may come in any order; in the order of
  // plan().tensors the disk writes in one go. InvalidArgument for a name that
  // was not announced and for another number of bytes.
  absl::Status Write(absl::string_view name, absl::Span<const std::byte> bytes);

  // Writes a part of a tensor from byte `offset` of it. Parts must not overlap.
  absl::Status WritePart(absl::string_view name, uint64_t offset,
                         absl::Span<const std::byte> bytes);

  // Moves the file to its name. FailedPrecondition, and no file, when a tensor
  // was not written whole. Call once, last.
  absl::Status Finish(bool sync = false);

  const SafetensorsPlan& plan() const { return plan_; }

 private:
  SafetensorsWriter(SafetensorsPlan plan, OutputFile file);

  SafetensorsPlan plan_;
  OutputFile file_;
  absl::flat_hash_map<std::string, size_t> by_name_;
  std::vector<uint64_t> written_;  // bytes, by tensor
};

// Writes `tensors` to `path`.
absl::Status WriteSafetensors(const std::string& path,
                              absl::Span<const NamedTensor> tensors,
                              const SafetensorsMetadata& metadata = {});

}  // namespace firstframe

#endif  // LIB_SAFETENSORS_WRITER_H_
