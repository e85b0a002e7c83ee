// Writes a checkpoint as several files and the index that ties them together.

#ifndef LIB_SAFETENSORS_SHARDED_WRITER_H_
#define LIB_SAFETENSORS_SHARDED_WRITER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/safetensors/writer.h"

namespace firstframe {

// Movable, thread-compatible. A shard is opened at the first tensor written to
// it and finished at its last, so that tensors written in the order of `specs`
// keep one file open.
class ShardedSafetensorsWriter {
 public:
  // Splits `specs`, in the order given, into `num_shards` runs of about equal
  // size (fewer when there are fewer tensors):
  // FOLDER/STEM-00001-of-00003.safetensors and
  // FOLDER/STEM.safetensors.index.json. One shard is FOLDER/STEM.safetensors
  // without an index. `metadata` goes into each file. InvalidArgument when
  // `num_shards` < 1, and as PlanSafetensors, also for a name that two shards
  // would share.
  static absl::StatusOr<ShardedSafetensorsWriter> Create(
      const std::string& folder, const std::string& stem,
      std::vector<TensorSpec> specs, const SafetensorsMetadata& metadata,
      int num_shards);

  absl::Status Write(absl::string_view name, absl::Span<const std::byte> bytes);

  // Writes the index. FailedPrecondition when a tensor is missing; shards that
  // were finished stay, but without an index they are no checkpoint.
  absl::Status Finish();

  // Paths of the files, shards first.
  std::vector<std::string> paths() const;

 private:
  struct Shard {
    std::string name;
    std::vector<TensorSpec> specs;
    size_t num_written = 0;
    std::optional<SafetensorsWriter> writer;
  };
  ShardedSafetensorsWriter() = default;
  std::string Index() const;

  std::string folder_;
  std::string stem_;
  SafetensorsMetadata metadata_;
  std::vector<Shard> shards_;
  absl::flat_hash_map<std::string, size_t> shard_of_;  // by tensor name
  uint64_t total_size_bytes_ = 0;
};

}  // namespace firstframe

#endif  // LIB_SAFETENSORS_SHARDED_WRITER_H_
