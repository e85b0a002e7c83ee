#include "lib/base/checked_math.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(CheckedMath, AddStopsAtTheTypesLimit) {
  EXPECT_EQ(CheckedAdd<uint64_t>(kMax - 1, 1), kMax);
  EXPECT_EQ(CheckedAdd<uint64_t>(kMax, 1), std::nullopt);
  EXPECT_EQ(CheckedAdd<int8_t>(100, 28), std::nullopt);
  EXPECT_EQ(CheckedAdd<int8_t>(-100, -29), std::nullopt);
}

TEST(CheckedMath, MultiplyStopsAtTheTypesLimit) {
  EXPECT_EQ(CheckedMultiply<uint64_t>(kMax / 2, 2), kMax - 1);
  EXPECT_EQ(CheckedMultiply<uint64_t>(kMax / 2 + 1, 2), std::nullopt);
  EXPECT_EQ(CheckedMultiply<uint64_t>(kMax, 0), 0u);
}

TEST(CheckedMath, AlignUpStopsAtTheTypesLimit) {
  EXPECT_EQ(CheckedAlignUp<uint64_t>(0, 256), 0u);
  EXPECT_EQ(CheckedAlignUp<uint64_t>(1, 256), 256u);
  EXPECT_EQ(CheckedAlignUp<uint64_t>(256, 256), 256u);
  EXPECT_EQ(CheckedAlignUp<uint64_t>(kMax - 254, 256), std::nullopt);
}

}  // namespace
}  // namespace firstframe
