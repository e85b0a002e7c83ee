#include "lib/safetensors/diff.h"

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/safetensors/writer.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::TempDir;
using Kind = TensorDifference::Kind;

template <typename T>
TensorView View(DType dtype, const std::vector<T>& values) {
  return {dtype,
          {static_cast<int64_t>(values.size())},
          absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()),
                              values.size() * sizeof(T))};
}

class DiffTest : public ::testing::Test {
 protected:
  std::vector<TensorDifference> Diff(const std::vector<NamedTensor>& a,
                                     const std::vector<NamedTensor>& b) {
    EXPECT_THAT(WriteSafetensors(dir_.File("a.safetensors"), a), IsOk());
    EXPECT_THAT(WriteSafetensors(dir_.File("b.safetensors"), b), IsOk());
    const auto left = Checkpoint::Open(dir_.File("a.safetensors"));
    const auto right = Checkpoint::Open(dir_.File("b.safetensors"));
    EXPECT_THAT(left, IsOk());
    EXPECT_THAT(right, IsOk());
    std::vector<TensorDifference> differences;
    const auto totals = DiffCheckpoints(
        *left, *right,
        [&](const TensorDifference& each) { differences.push_back(each); });
    EXPECT_THAT(totals, IsOk());
    totals_ = *totals;
    return differences;
  }
  TempDir dir_;
  DiffTotals totals_;
};

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST_F(DiffTest, ACheckpointEqualsItself) {
  const std::vector<float> values = {1, -0.0f, kNan, kInf};
  const std::vector<NamedTensor> tensors = {
      {"x", View(DType::kF32, values)}, {"y", View<float>(DType::kF32, {})}};
  EXPECT_TRUE(Diff(tensors, tensors).empty());
  EXPECT_TRUE(totals_.is_equal());
  EXPECT_EQ(totals_.equal, 2u);
}

TEST_F(DiffTest, NamesAndShapes) {
  const std::vector<float> two = {1, 2}, three = {1, 2, 3};
  const auto differences = Diff(
      {{"both", View(DType::kF32, two)}, {"left", View(DType::kF32, two)}},
      {{"both", View(DType::kF32, three)}, {"right", View(DType::kF32, two)}});
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_TRUE(differences[0].kind == Kind::kShape);
  EXPECT_EQ(differences[0].shape_b, Shape{3});
  EXPECT_TRUE(differences[1].kind == Kind::kOnlyInA);
  EXPECT_EQ(differences[1].tensor, "left");
  EXPECT_TRUE(differences[2].kind == Kind::kOnlyInB);
  EXPECT_EQ(differences[2].tensor, "right");
  EXPECT_FALSE(totals_.is_equal());
}

TEST_F(DiffTest, Values) {
  const std::vector<float> a = {3, 4, kNan, kInf, 1}, b = {3, 4.5, kNan, 2, 1};
  const auto differences =
      Diff({{"x", View(DType::kF32, a)}}, {{"x", View(DType::kF32, b)}});
  ASSERT_EQ(differences.size(), 1u);
  const ValueDifference& values = *differences[0].values;
  EXPECT_EQ(values.elements, 5u);
  EXPECT_EQ(values.differing, 2u);
  EXPECT_EQ(values.non_finite, 1u);
  EXPECT_EQ(values.max_abs, 0.5);
  EXPECT_DOUBLE_EQ(*values.relative_l2, std::sqrt(0.25 / 26));
}

TEST_F(DiffTest, MinusZeroDiffersInBits) {
  const std::vector<float> a = {0.0f}, b = {-0.0f};
  const auto differences =
      Diff({{"x", View(DType::kF32, a)}}, {{"x", View(DType::kF32, b)}});
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].values->differing, 1u);
  EXPECT_EQ(differences[0].values->max_abs, 0.0);
  EXPECT_FALSE(differences[0].values->relative_l2.has_value());
}

TEST_F(DiffTest, IntegersBeyondFloatDifferInBits) {
  const std::vector<int64_t> a = {(int64_t{1} << 53) + 1},
                             b = {int64_t{1} << 53};
  const auto differences =
      Diff({{"x", View(DType::kI64, a)}}, {{"x", View(DType::kI64, b)}});
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].values->differing, 1u);
}

TEST_F(DiffTest, OtherTypesAreComparedByValue) {
  const std::vector<float> f32 = {1.0f, 1.001f};
  const std::vector<uint16_t> bf16 = {0x3F80, 0x3F80};
  const auto differences =
      Diff({{"x", View(DType::kF32, f32)}}, {{"x", View(DType::kBF16, bf16)}});
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_TRUE(differences[0].kind == Kind::kDType);
  EXPECT_EQ(differences[0].values->differing, 1u);
  EXPECT_NEAR(differences[0].values->max_abs, 0.001, 1e-6);
}

TEST_F(DiffTest, TypesWithoutAFloatReading) {
  const std::vector<double> a = {1, 2}, b = {1, 3};
  EXPECT_TRUE(Diff({{"x", View(DType::kC64, a)}}, {{"x", View(DType::kC64, a)}})
                  .empty());
  const auto differences =
      Diff({{"x", View(DType::kC64, a)}}, {{"x", View(DType::kC64, b)}});
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_FALSE(differences[0].values.has_value());
}

TEST_F(DiffTest, MoreThanOneBlock) {
  std::vector<uint8_t> a(600'000, 7), b = a;
  b[599'999] = 9;
  const auto differences =
      Diff({{"x", View(DType::kU8, a)}}, {{"x", View(DType::kU8, b)}});
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].values->elements, 600'000u);
  EXPECT_EQ(differences[0].values->differing, 1u);
  std::ostringstream text, jsonl;
  WriteDifferenceText(differences[0], text);
  EXPECT_EQ(text.str(),
            "\"x\": values differ: 1 of 600000 elements differ, by 2 at most, "
            "relative L2 0.000368856\n");
  WriteDifferenceJsonl(differences[0], jsonl);
  EXPECT_THAT(jsonl.str(),
              ::testing::HasSubstr(R"("differing":1,"non_finite":0)"));
}

}  // namespace
}  // namespace firstframe
