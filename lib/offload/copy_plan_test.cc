#include "lib/offload/copy_plan.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace firstframe {
namespace {

// Never dereferenced: plans are about addresses alone.
std::byte* Address(uintptr_t value) {
  return reinterpret_cast<std::byte*>(value);
}

HostTier TierOf(std::vector<std::pair<uintptr_t, uint64_t>> ranges) {
  HostTier tier;
  for (const auto& [at, size] : ranges) {
    StorageRange range;
    range.data = Address(at);
    range.size_bytes = size;
    tier.ranges.push_back(range);
  }
  return tier;
}

TEST(PlanChunks, OrdersByAddressAndAlignsEachRange) {
  const HostTier tier = TierOf({{0x2000, 100}, {0x1000, 300}});
  const auto chunks = PlanChunks(tier, {0, 1}, {1 << 20, 1 << 20});
  ASSERT_EQ(chunks.size(), 1u);
  ASSERT_EQ(chunks[0].ranges.size(), 2u);
  EXPECT_EQ(chunks[0].ranges[0].range, 1u);
  EXPECT_EQ(chunks[0].ranges[1].offset, 512u);
  EXPECT_EQ(chunks[0].size_bytes, 612u);
}

TEST(PlanChunks, ALargeRangeHasAChunkToItself) {
  const HostTier tier = TierOf({{0x1000, 100}, {0x10000, 5000}, {0x20000, 10}});
  const auto chunks = PlanChunks(tier, {0, 1, 2}, {1000, 1000});
  ASSERT_EQ(chunks.size(), 3u);
  EXPECT_EQ(chunks[1].size_bytes, 5000u);
}

TEST(PlanChunks, ChunksGrowToTheLargest) {
  std::vector<std::pair<uintptr_t, uint64_t>> ranges;
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < 64; ++i) {
    ranges.push_back({0x10000 + i * 0x100, 0x100});
    all.push_back(i);
  }
  std::vector<uint64_t> sizes;
  for (const ChunkLayout& chunk :
       PlanChunks(TierOf(ranges), all, {0x200, 0x1000})) {
    sizes.push_back(chunk.size_bytes);
  }
  EXPECT_THAT(sizes, ::testing::ElementsAre(0x200, 0x400, 0x800, 0x1000, 0x1000,
                                            0x1000, 0x200));
}

TEST(MakeCopies, ArenasGoInOneCopyWithTheirGaps) {
  HostTier tier = TierOf({{0x1000, 200}, {0x1100, 256}, {0x1200, 10}});
  const auto chunks = PlanChunks(tier, {0, 1, 2}, {1 << 20, 1 << 20});
  EXPECT_EQ(MakeCopies(tier, chunks[0], Address(0x90000)).size(), 2u)
      << "memory between the first two is not known to be ours";
  tier.is_arena = true;
  const auto copies = MakeCopies(tier, chunks[0], Address(0x90000));
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].size_bytes, 0x20Au);
  EXPECT_EQ(copies[0].to, Address(0x90000));
  EXPECT_EQ(copies[0].from, Address(0x1000));
}

TEST(MakeCopies, CopiesAreCutWhereRegistrationsEnd) {
  HostTier tier = TierOf({{0x1000, 0x1000}});
  tier.cuts = {Address(0x1000), Address(0x1800), Address(0x1C00),
               Address(0x2000), Address(0x3000)};
  const auto chunks = PlanChunks(tier, {0}, {1 << 20, 1 << 20});
  const auto copies = MakeCopies(tier, chunks[0], Address(0x90000));
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_EQ(copies[1].from, Address(0x1800));
  EXPECT_EQ(copies[1].to, Address(0x90800));
  EXPECT_EQ(copies[1].size_bytes, 0x400u);
  EXPECT_EQ(copies[2].size_bytes, 0x400u);
}

}  // namespace
}  // namespace firstframe
