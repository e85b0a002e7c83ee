#include "lib/load/load_source.h"

#include <utility>

namespace firstframe {

LoadSource MakeLoadSource(const Checkpoint& checkpoint) {
  LoadSource source;
  for (const CheckpointFile& file : checkpoint.files()) {
    source.paths.push_back(file.path);
  }
  source.tensors.reserve(checkpoint.entries().size());
  for (const CheckpointEntry& entry : checkpoint.entries()) {
    const SafetensorsTensor& tensor = checkpoint.tensor(entry);
    SourceTensor from;
    from.name = tensor.name;
    from.dtype = tensor.dtype;
    from.shape = tensor.shape;
    from.file = entry.file;
    from.file_offset = checkpoint.file_offset(entry);
    from.size_bytes = tensor.size_bytes();
    source.tensors.push_back(std::move(from));
  }
  return source;
}

}  // namespace firstframe
