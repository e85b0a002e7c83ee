#include "lib/tensor/shape.h"

#include "gtest/gtest.h"

namespace firstframe {
namespace {

TEST(Shape, ScalarHasOneElement) {
  EXPECT_EQ(CheckedNumElements({}), 1);
  EXPECT_EQ(ShapeToString({}), "[]");
}

TEST(Shape, ProductIsTakenLeftToRight) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_EQ(CheckedNumElements({kHuge, 4, 0}), std::nullopt);
  EXPECT_EQ(CheckedNumElements({0, kHuge, 4}), 0);
  EXPECT_EQ(CheckedNumElements({2, -1}), std::nullopt);
  EXPECT_EQ(CheckedNumElements({2, 3, 4}), 24);
}

TEST(Shape, SizesSubByteTypesByBits) {
  EXPECT_EQ(CheckedSizeBytes(DType::kF4, {3}), std::nullopt);
  EXPECT_EQ(CheckedSizeBytes(DType::kF4, {4}), 2);
  EXPECT_EQ(CheckedSizeBytes(DType::kF6E3M2, {4}), 3);
  EXPECT_EQ(CheckedSizeBytes(DType::kF6E3M2, {2}), std::nullopt);
  EXPECT_EQ(CheckedSizeBytes(DType::kF64, {int64_t{1} << 60}), std::nullopt);
  EXPECT_EQ(CheckedSizeBytes(DType::kF32, {2, 0}), 0);
}

TEST(Shape, PrintsAsPythonDoes) {
  EXPECT_EQ(ShapeToString({1, 16, 3}), "[1, 16, 3]");
}

}  // namespace
}  // namespace firstframe
