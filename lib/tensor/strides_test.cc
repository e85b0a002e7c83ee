#include "lib/tensor/strides.h"

#include <cstdint>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace firstframe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(IsRowMajor, IgnoresDimensionsOfOne) {
  EXPECT_TRUE(IsRowMajor({}, {}));
  EXPECT_TRUE(IsRowMajor({2, 3}, {3, 1}));
  EXPECT_TRUE(IsRowMajor({2, 1, 3}, {3, 77, 1}));
  EXPECT_FALSE(IsRowMajor({2, 3}, {1, 2}));
  EXPECT_FALSE(IsRowMajor({3}, {0}));
  EXPECT_FALSE(IsRowMajor({3}, {-1}));
}

TEST(IsDense, InAnyOrder) {
  EXPECT_TRUE(IsDense({}, {}));
  EXPECT_TRUE(IsDense({2, 3}, {1, 2}));
  EXPECT_TRUE(IsDense({2, 3, 4, 5}, {60, 1, 15, 3}));
  EXPECT_TRUE(IsDense({1, 3}, {77, 1}));
  EXPECT_FALSE(IsDense({2, 3}, {1, 3}));  // a gap
  EXPECT_FALSE(IsDense({2, 3}, {0, 1}));  // repeated
  EXPECT_FALSE(IsDense({3}, {-1}));       // backwards
  EXPECT_FALSE(IsDense({2, 2}, {1, 1}));  // overlapping
}

TEST(Coalesce, MergesWhatOneStrideCovers) {
  const StridedShape dense = Coalesce({2, 1, 3, 4}, {12, 5, 4, 1});
  EXPECT_THAT(dense.shape, ElementsAre(24));
  EXPECT_THAT(dense.strides, ElementsAre(1));
  // Channels last of [2, 3, 4, 5].
  const StridedShape last = Coalesce({2, 3, 4, 5}, {60, 1, 15, 3});
  EXPECT_THAT(last.shape, ElementsAre(2, 3, 20));
  EXPECT_THAT(last.strides, ElementsAre(60, 1, 3));
  EXPECT_THAT(Coalesce({1, 1}, {7, 8}).shape, IsEmpty());
  EXPECT_THAT(Coalesce({4, 3}, {0, 0}).shape, ElementsAre(12));
}

TEST(GatherRowMajor, TransposesReversesRepeats) {
  const uint16_t data[] = {0, 1, 2, 3, 4, 5};
  const auto gather = [&](const uint16_t* from, Shape shape,
                          std::vector<int64_t> strides) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    std::vector<uint16_t> to(count, 99);
    GatherRowMajor(reinterpret_cast<const std::byte*>(from), shape, strides, 2,
                   reinterpret_cast<std::byte*>(to.data()));
    return to;
  };
  EXPECT_THAT(gather(data, {3, 2}, {1, 3}), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(gather(data + 5, {6}, {-1}), ElementsAre(5, 4, 3, 2, 1, 0));
  EXPECT_THAT(gather(data, {2, 2}, {0, 1}), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(gather(data + 2, {}, {}), ElementsAre(2));
  EXPECT_THAT(gather(data, {0, 4}, {4, 1}), IsEmpty());
}

TEST(Widen, TakesRunsThatAllAllow) {
  StridedShape layout = {{3, 8}, {16, 1}};
  EXPECT_EQ(Widen(2, 0, layout), 16);
  EXPECT_THAT(layout.shape, ElementsAre(3, 1));
  EXPECT_THAT(layout.strides, ElementsAre(2, 1));
  layout = {{3, 8}, {16, 1}};
  EXPECT_EQ(Widen(2, 0x1004, layout), 4);  // the address
  layout = {{3, 8}, {18, 1}};
  EXPECT_EQ(Widen(2, 0, layout), 4);  // the stride
  layout = {{3, 6}, {64, 1}};
  EXPECT_EQ(Widen(1, 0, layout), 2);  // the run
  layout = {{3, 8}, {1, 8}};
  EXPECT_EQ(Widen(2, 0, layout), 2);  // no runs
  layout = {};
  EXPECT_EQ(Widen(2, 0, layout), 2);
}

TEST(Coalesce, KeepsTheElements) {
  std::mt19937 random(1);
  std::vector<int32_t> data(4096);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<int32_t>(i);
  const auto gather = [&](const StridedShape& from) {
    int64_t count = 1;
    for (const int64_t size : from.shape) count *= size;
    std::vector<int32_t> to(count);
    GatherRowMajor(reinterpret_cast<const std::byte*>(data.data()), from.shape,
                   from.strides, 4, reinterpret_cast<std::byte*>(to.data()));
    return to;
  };
  for (int round = 0; round < 500; ++round) {
    StridedShape from;
    const int rank = static_cast<int>(random() % 6);
    for (int d = 0; d < rank; ++d) {
      from.shape.push_back(1 + random() % 4);
      from.strides.push_back(random() % 2 ? int64_t{1} << 2 * (random() % 5)
                                          : random() % 40);
    }
    const StridedShape fewer = Coalesce(from.shape, from.strides);
    EXPECT_LE(fewer.shape.size(), from.shape.size());
    EXPECT_EQ(gather(fewer), gather(from)) << ShapeToString(from.shape);
    StridedShape wider = fewer;
    const int64_t bytes =
        Widen(4, reinterpret_cast<uintptr_t>(data.data()), wider);
    std::vector<int32_t> to(gather(from).size());
    GatherRowMajor(reinterpret_cast<const std::byte*>(data.data()), wider.shape,
                   wider.strides, bytes,
                   reinterpret_cast<std::byte*>(to.data()));
    EXPECT_EQ(to, gather(from)) << ShapeToString(from.shape);
  }
}

}  // namespace
}  // namespace firstframe
