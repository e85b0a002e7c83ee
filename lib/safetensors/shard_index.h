// The index of a checkpoint in several files ("*.safetensors.index.json"):
//
//   {"metadata": {"total_size": 9608}, "weight_map": {"a.weight":
//   "model-00001-of-00002.safetensors", ...}}

#ifndef LIB_SAFETENSORS_SHARD_INDEX_H_
#define LIB_SAFETENSORS_SHARD_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "lib/safetensors/finding.h"
#include "lib/safetensors/header.h"

namespace firstframe {

// A larger index means to cost memory; the largest published ones are a few
// megabytes.
inline constexpr uint64_t kMaxIndexSize = 100'000'000;

struct ShardIndex {
  struct Entry {
    std::string tensor;
    uint32_t file = 0;      // in `files`
    uint64_t position = 0;  // of the tensor's name in the index
  };

  std::vector<std::string> files;  // plain file names, in order of appearance
  std::vector<Entry> entries;      // as written
  std::optional<uint64_t> total_size_bytes;
  uint64_t total_size_position = 0;
};

struct IndexVerdict {
  ShardIndex index;
  std::vector<Finding> findings;
  size_t dropped_findings = 0;

  bool ok() const { return !HasError(findings); }
};

// Judges the text of an index by itself. File names must be plain: one with a
// folder in it is an error, so that an index cannot lead outside its folder.
IndexVerdict CheckShardIndex(absl::string_view path, absl::string_view text,
                             Strictness strictness);

// Compares an index with the headers of its shards, one at a time, so that no
// more than one header need be in memory. Thread-compatible.
class IndexCheck {
 public:
  // `index` and `sink` must outlive the check.
  IndexCheck(const ShardIndex& index, Strictness strictness, FindingSink* sink);

  // Compares a shard's header with what the index says of `files[file]`. Calls
  // `visit(tensor)`, when given, for each tensor that the index takes from
  // there. A name that the index takes from another shard is a warning: the
  // index decides. A name it does not have is an error in strict mode.
  template <typename Visitor>
  void AddShard(uint32_t file, const SafetensorsHeader& header, Visitor visit) {
    has_shard_[file] = true;
    for (const SafetensorsTensor& tensor : header.tensors) {
      if (Take(file, tensor)) visit(tensor);
    }
  }

  // Says that `files[file]` could not be opened or is malformed; `found` says
  // how. Its tensors are then not reported one by one.
  void AddMissingShard(uint32_t file, std::string found);

  // Reports names that no shard holds, and a wrong total size. Call once, last.
  void Finish();

 private:
  bool Take(uint32_t file, const SafetensorsTensor& tensor);

  const ShardIndex& index_;
  const Strictness strictness_;
  FindingSink* const sink_;
  absl::flat_hash_map<absl::string_view, uint32_t> entries_;  // by name
  std::vector<bool> is_taken_;                                // by entry
  std::vector<bool> has_shard_;                               // by file
  uint64_t total_size_bytes_ = 0;
};

}  // namespace firstframe

#endif  // LIB_SAFETENSORS_SHARD_INDEX_H_
