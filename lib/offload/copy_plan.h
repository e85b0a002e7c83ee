// How ranges of host memory go to a device in few, large copies.

#ifndef LIB_OFFLOAD_COPY_PLAN_H_
#define LIB_OFFLOAD_COPY_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "lib/cuda/runtime.h"
#include "lib/offload/host_tier.h"

namespace firstframe {

// Every range begins at a multiple of this in device memory: see
// kTensorAlignment in lib/load/plan.h.
inline constexpr uint64_t kDeviceAlignment = 256;

struct PlacedRange {
  uint32_t range = 0;   // index into the tier's ranges
  uint64_t offset = 0;  // in the chunk
};

// Device memory of one allocation and what goes there.
struct ChunkLayout {
  uint64_t size_bytes = 0;
  std::vector<PlacedRange> ranges;  // by address in host memory
};

struct ChunkSizes {
  uint64_t first_bytes = 0;
  uint64_t most_bytes = 0;
};

// Lays `ranges` (indexes into the tier's) out in chunks of at most
// sizes.first_bytes, then twice that, and so on up to sizes.most_bytes; a range
// that is larger has a chunk to itself.
std::vector<ChunkLayout> PlanChunks(const HostTier& tier,
                                    std::vector<uint32_t> ranges,
                                    const ChunkSizes& sizes);

// Returns the copies that fill `layout` at `base`: one for each run that is as
// contiguous on the device as on the host, cut where the tier says.
std::vector<cuda::Copy> MakeCopies(const HostTier& tier,
                                   const ChunkLayout& layout, std::byte* base);

}  // namespace firstframe

#endif  // LIB_OFFLOAD_COPY_PLAN_H_
