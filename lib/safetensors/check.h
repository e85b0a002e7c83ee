// Judges whole checkpoints, file by file, for a report: every finding of every
// file, not the first. No more than one header (and the index, where there is
// one) is in memory at a time.

#ifndef LIB_SAFETENSORS_CHECK_H_
#define LIB_SAFETENSORS_CHECK_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/hasher.h"
#include "lib/safetensors/finding.h"
#include "lib/safetensors/header.h"
#include "lib/tensor/dtype.h"

namespace firstframe {

struct CheckOptions {
  Strictness strictness = Strictness::kStrict;
  std::optional<HashKind> hash;  // of each whole file
};

// What a set of sound files holds.
struct TensorSummary {
  struct Count {
    uint64_t tensors = 0;
    uint64_t elements = 0;
    uint64_t size_bytes = 0;
  };
  // Data that begin at a multiple of this many bytes of their file.
  static constexpr std::array<int, 4> kAlignments = {16, 64, 256, 4096};

  Count all;
  std::array<Count, kNumDTypes> by_dtype;
  std::array<uint64_t, 4> aligned = {};  // tensors, by kAlignments
  uint64_t misaligned = 0;  // tensors that do not begin at their element's size
  uint64_t empty = 0;       // tensors of no bytes
  uint64_t header_bytes = 0;
  uint64_t file_bytes = 0;
  std::string largest;  // the largest tensor's name
  uint64_t largest_bytes = 0;

  void Add(const SafetensorsHeader& header, uint64_t file_size);
};

struct FileReport {
  bool is_index = false;
  std::string path;
  std::string link_target;  // where it leads when it is a symbolic link
  uint64_t size_bytes = 0;
  uint64_t header_bytes = 0;  // 8 + N; 0 when it has none
  uint64_t tensors = 0;
  std::vector<Finding> findings;
  size_t dropped_findings = 0;
  std::string hash;  // hexadecimal; empty unless asked for

  bool is_valid() const { return !HasError(findings); }
};

struct CheckTotals {
  uint64_t files = 0;  // indexes are counted apart
  uint64_t indexes = 0;
  uint64_t invalid = 0;  // files and indexes
  uint64_t errors = 0;
  uint64_t warnings = 0;
  TensorSummary summary;  // of the valid files

  void Add(const FileReport& report);
};

// Checks one path after the other and adds up. Thread-compatible.
class ConformanceCheck {
 public:
  // `visit` receives a report per file, as soon as there is one; an index comes
  // after its shards.
  ConformanceCheck(const CheckOptions& options,
                   std::function<void(const FileReport&)> visit)
      : options_(options), visit_(std::move(visit)) {}

  // Checks a file; an index and its shards; a folder's indexes, their shards
  // and every other *.safetensors in it; for a folder without any of these, its
  // sub-folders (a pipeline's components). NotFound when `path` has nothing to
  // check; errno's codes when something cannot be read, after which the rest of
  // `path` is not checked.
  //
  // With a hash of SHA-256, a file whose name, or whose link's, is 64
  // hexadecimal digits must have that hash (rule blob_hash).
  absl::Status Check(const std::string& path);

  const CheckTotals& totals() const { return totals_; }

 private:
  const CheckOptions options_;
  const std::function<void(const FileReport&)> visit_;
  CheckTotals totals_;
};

}  // namespace firstframe

#endif  // LIB_SAFETENSORS_CHECK_H_
