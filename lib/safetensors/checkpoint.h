// A checkpoint as users have them: one file, a folder of one component, the
// index of several shards, a snapshot of the Hugging Face cache.

#ifndef LIB_SAFETENSORS_CHECKPOINT_H_
#define LIB_SAFETENSORS_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/file_reader.h"
#include "lib/safetensors/finding.h"
#include "lib/safetensors/header.h"
#include "lib/safetensors/layout.h"
#include "lib/tensor/host_tensor.h"

namespace firstframe {

struct CheckpointFile {
  std::string path;
  std::string link_target;  // where it leads when it is a symbolic link
  FileIdentity identity;    // when its header was read
  SafetensorsHeader header;
};

// A tensor and the file that holds it: files()[file].header.tensors[tensor].
struct CheckpointEntry {
  uint32_t file = 0;
  uint32_t tensor = 0;
};

struct CheckpointOptions {
  Strictness strictness = Strictness::kStrict;
  ReadMethod method = ReadMethod::kPread;
};

// The headers of all files, checked against each other and the index. Movable,
// thread-compatible; holds no file open and no data.
class Checkpoint {
 public:
  // `path` is a file, an index or a folder, as FindCheckpoint (layout.h) reads
  // it. DataLoss with the first error and the number of further ones when a
  // file or the index is malformed, a shard is absent or short, names are
  // missing or come twice; NotFound and others from FindCheckpoint and errno.
  // No tensor is read before every header is sound.
  static absl::StatusOr<Checkpoint> Open(const std::string& path,
                                         const CheckpointOptions& options = {});

  const std::string& path() const { return layout_.path; }
  const std::string& index_path() const { return layout_.index_path; }
  const std::vector<CheckpointFile>& files() const { return files_; }

  // Every tensor of the checkpoint, by file and place in it. One that the index
  // takes from another shard is left out.
  const std::vector<CheckpointEntry>& entries() const { return entries_; }

  const SafetensorsTensor& tensor(CheckpointEntry entry) const {
    return files_[entry.file].header.tensors[entry.tensor];
  }
  // Where its data begins in its file.
  uint64_t file_offset(CheckpointEntry entry) const {
    return files_[entry.file].header.data_offset + tensor(entry).begin;
  }

  // Returns the entry called `name`, or null.
  const CheckpointEntry* Find(absl::string_view name) const;

  // Of all entries together.
  uint64_t size_bytes() const { return size_bytes_; }

  // What is odd but no error, in the order it was met.
  const std::vector<Finding>& warnings() const { return warnings_; }

  // FailedPrecondition when a file is not what it was at Open.
  absl::Status CheckUnchanged() const;

 private:
  friend class CheckpointOpener;
  Checkpoint() = default;

  CheckpointLayout layout_;
  std::vector<CheckpointFile> files_;
  std::vector<CheckpointEntry> entries_;
  absl::flat_hash_map<std::string, uint32_t> by_name_;  // to entries_
  uint64_t size_bytes_ = 0;
  std::vector<Finding> warnings_;
};

// Reads the data of a checkpoint's tensors. Keeps its files open. Thread-safe.
class CheckpointReader {
 public:
  // Opens every file of `checkpoint`, which must outlive the reader.
  // FailedPrecondition when one changed since its header was read.
  static absl::StatusOr<CheckpointReader> Open(
      const Checkpoint& checkpoint, ReadMethod method = ReadMethod::kPread);

  // Fills `target`, which must be as large as the tensor.
  absl::Status Read(CheckpointEntry entry, absl::Span<std::byte> target) const;

  // Returns a copy of the tensor.
  absl::StatusOr<HostTensor> Read(CheckpointEntry entry) const;

  const FileReader& file(uint32_t file) const { return *readers_[file]; }

 private:
  explicit CheckpointReader(const Checkpoint* checkpoint)
      : checkpoint_(checkpoint) {}

  const Checkpoint* checkpoint_;
  std::vector<std::unique_ptr<FileReader>> readers_;
};

// Reads and judges the header of `reader`'s file. I/O errors are the status.
absl::StatusOr<HeaderVerdict> ReadHeader(const FileReader& reader,
                                         Strictness strictness);

}  // namespace firstframe

#endif  // LIB_SAFETENSORS_CHECKPOINT_H_
