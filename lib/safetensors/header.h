// The header of a safetensors file: parsed and validated in one pass, with the
// byte position of everything it finds wrong. docs/formats/safetensors.md has
// the format and each rule.

#ifndef LIB_SAFETENSORS_HEADER_H_
#define LIB_SAFETENSORS_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/safetensors/finding.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"

namespace firstframe {

// The file begins with N, the length of the JSON that follows, in this many
// bytes, little-endian.
inline constexpr size_t kHeaderPrefixSize = 8;

// The reference refuses longer headers (MAX_HEADER_SIZE,
// huggingface/safetensors 0.8); exactly this many bytes pass.
inline constexpr uint64_t kMaxHeaderSize = 100'000'000;

// No framework goes near it, and a file that does means to cost memory.
inline constexpr size_t kMaxRank = 64;

struct SafetensorsTensor {
  std::string name;  // as it is in the file: never use it as a path
  DType dtype = DType::kF32;
  Shape shape;
  uint64_t begin = 0;  // of its data, counted from the data buffer's start
  uint64_t end = 0;
  uint64_t position = 0;  // of its name in the file, at the opening quote

  uint64_t size_bytes() const { return end - begin; }
};

struct SafetensorsHeader {
  uint64_t data_offset = 0;  // 8 + N: where the data buffer begins in the file
  uint64_t data_size = 0;    // bytes of all tensors together
  std::vector<SafetensorsTensor> tensors;  // in the order of their data
  std::vector<std::pair<std::string, std::string>> metadata;  // as written
};

// `findings` holds warnings and errors in the order they were met. `header` is
// whole and consistent when ok(), and partial otherwise.
struct HeaderVerdict {
  SafetensorsHeader header;
  std::vector<Finding> findings;
  size_t dropped_findings = 0;  // beyond kMaxFindings

  bool ok() const { return !HasError(findings); }
};

// Returns N, or what is wrong with the file's beginning: too short, N = 0, N
// over the limit or past the end, or another kind of file altogether (a Git LFS
// pointer, a zip, a pickle, ...), which is then named. `start` is the first
// bytes of the file (8 or more; fewer only when the file is shorter), and more
// make the naming better.
std::variant<uint64_t, Finding> CheckHeaderPrefix(absl::string_view path,
                                                  absl::string_view start,
                                                  uint64_t file_size);

// Judges a file by its first 8 + N bytes (`start`; less when CheckHeaderPrefix
// refuses it) and its size. Linear in N but for a sort of tensors whose entries
// are not in the order of their data; memory is a small multiple of N.
// `path` goes into the findings.
HeaderVerdict CheckSafetensorsHeader(absl::string_view path,
                                     absl::string_view start,
                                     uint64_t file_size, Strictness strictness);

// Like CheckSafetensorsHeader, with the first error as DataLoss. Warnings are
// lost.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    absl::string_view path, absl::string_view start, uint64_t file_size,
    Strictness strictness = Strictness::kStrict);

}  // namespace firstframe

#endif  // LIB_SAFETENSORS_HEADER_H_
