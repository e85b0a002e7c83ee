#include "lib/offload/copy_plan.h"

#include <algorithm>

namespace firstframe {
namespace {

uint64_t AlignUp(uint64_t value) {
  return (value + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment;
}

// Appends `copy` in parts that span none of `cuts`.
void AppendCut(const std::vector<const std::byte*>& cuts, cuda::Copy copy,
               std::vector<cuda::Copy>& copies) {
  const auto* from = static_cast<const std::byte*>(copy.from);
  auto* to = static_cast<std::byte*>(copy.to);
  const std::byte* const end = from + copy.size_bytes;
  auto cut = std::upper_bound(cuts.begin(), cuts.end(), from);
  while (from != end) {
    const std::byte* const stop =
        cut != cuts.end() && *cut < end ? *cut++ : end;
    copies.push_back({to, from, static_cast<size_t>(stop - from)});
    to += stop - from;
    from = stop;
  }
}

}  // namespace

std::vector<ChunkLayout> PlanChunks(const HostTier& tier,
                                    std::vector<uint32_t> ranges,
                                    const ChunkSizes& sizes) {
  std::sort(ranges.begin(), ranges.end(), [&](uint32_t a, uint32_t b) {
    return tier.ranges[a].data < tier.ranges[b].data;
  });
  std::vector<ChunkLayout> chunks;
  uint64_t most = std::min(sizes.first_bytes, sizes.most_bytes);
  for (const uint32_t i : ranges) {
    const uint64_t size = tier.ranges[i].size_bytes;
    if (chunks.empty()) {
      chunks.emplace_back();
    } else if (AlignUp(chunks.back().size_bytes) + size > most) {
      chunks.emplace_back();
      most = std::min(2 * most, sizes.most_bytes);
    }
    ChunkLayout& chunk = chunks.back();
    const uint64_t offset = AlignUp(chunk.size_bytes);
    chunk.ranges.push_back({i, offset});
    chunk.size_bytes = offset + size;
  }
  return chunks;
}

std::vector<cuda::Copy> MakeCopies(const HostTier& tier,
                                   const ChunkLayout& layout, std::byte* base) {
  std::vector<cuda::Copy> copies;
  cuda::Copy run;
  for (const PlacedRange& placed : layout.ranges) {
    const StorageRange& range = tier.ranges[placed.range];
    std::byte* const to = base + placed.offset;
    const std::byte* const run_end =
        static_cast<const std::byte*>(run.from) + run.size_bytes;
    std::byte* const run_to_end =
        static_cast<std::byte*>(run.to) + run.size_bytes;
    const ptrdiff_t gap = run.size_bytes > 0 ? range.data - run_end : -1;
    const bool goes_on =
        gap >= 0 && gap == to - run_to_end &&
        (gap == 0 || (tier.is_arena && gap < ptrdiff_t{kDeviceAlignment}));
    if (goes_on) {
      run.size_bytes += gap + range.size_bytes;
      continue;
    }
    if (run.size_bytes > 0) AppendCut(tier.cuts, run, copies);
    run = {to, range.data, static_cast<size_t>(range.size_bytes)};
  }
  if (run.size_bytes > 0) AppendCut(tier.cuts, run, copies);
  return copies;
}

}  // namespace firstframe
