// FastVideo's way of loading, tensor by tensor: what weight_bench compares
// with.
//
// Out of a mapping of each file (a plain read on network file systems), one
// pageable copy or one broadcast per tensor, no threads, no staging. The same
// calls that safetensors, PyTorch and torch.distributed come to, without
// Python.

#ifndef LIB_LOAD_BASELINE_LOAD_H_
#define LIB_LOAD_BASELINE_LOAD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cuda/stream.h"
#include "lib/dist/collective.h"
#include "lib/load/sources.h"

namespace firstframe {

struct BaselineReport {
  int64_t read_ns = 0;        // mapping, copying to the arena
  int64_t collective_ns = 0;  // broadcasts and their waits
};

// Reads every byte of every tensor out of the mappings (into a small scratch
// buffer), and keeps nothing: FastVideo's to_cpu returns views of the mapping,
// and a benchmark of it must touch them.
absl::StatusOr<BaselineReport> TouchPerTensor(const LoadPlan& plan,
                                              const OpenedSources& sources);

enum class BaselineBroadcast { kNone, kSync, kAsync };

// Fills the arena tensor by tensor. `stream` is the device stream to copy on,
// or null for host memory. With kNone every rank reads; else rank 0 does, and
// each tensor is broadcast and waited for at once or at the end.
absl::StatusOr<BaselineReport> LoadPerTensor(
    const LoadPlan& plan, const OpenedSources& sources, std::byte* arena,
    const cuda::Stream* stream, Collective& group, BaselineBroadcast broadcast);

}  // namespace firstframe

#endif  // LIB_LOAD_BASELINE_LOAD_H_
