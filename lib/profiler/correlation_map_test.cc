#include "lib/profiler/correlation_map.h"

#include "gtest/gtest.h"

namespace firstframe {
namespace {

TEST(CorrelationMap, RemembersWhatWasSet) {
  CorrelationMap map;
  EXPECT_EQ(map.Get(7), 0u);
  map.Set(7, 3);
  map.Set(CorrelationMap::kPageSize, 4);
  map.Set(UINT32_MAX, 5);
  EXPECT_EQ(map.Get(7), 3u);
  EXPECT_EQ(map.Get(8), 0u);
  EXPECT_EQ(map.Get(CorrelationMap::kPageSize), 4u);
  EXPECT_EQ(map.Get(UINT32_MAX), 5u);
  map.Set(7, 9);
  EXPECT_EQ(map.Get(7), 9u);
}

TEST(CorrelationMap, DropsTheOldestPage) {
  CorrelationMap map;
  constexpr auto kPage = static_cast<uint32_t>(CorrelationMap::kPageSize);
  for (uint32_t page = 0; page <= CorrelationMap::kMaxPages; ++page) {
    map.Set(page * kPage + 1, page + 1);
  }
  EXPECT_EQ(map.Get(1), 0u);
  for (uint32_t page = 1; page <= CorrelationMap::kMaxPages; ++page) {
    EXPECT_EQ(map.Get(page * kPage + 1), page + 1);
  }
}

}  // namespace
}  // namespace firstframe
