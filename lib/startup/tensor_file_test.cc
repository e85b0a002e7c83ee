#include "lib/startup/tensor_file.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(TensorFile, RoundTripsInBothReadableForms) {
  TempDir dir;
  const FloatTensor tensor = {{2, 3}, {1, -2.5f, 0, kInf, 1e-40f, 3}};
  for (const std::string name : {"a.safetensors", "a.npy"}) {
    const std::string path = dir.File(name);
    ASSERT_THAT(WriteTensorFile(path, "sample", tensor), IsOk());
    ASSERT_OK_AND_ASSIGN(const FloatTensor read,
                         ReadTensorFile(path, "sample"));
    EXPECT_EQ(read.shape, tensor.shape);
    EXPECT_EQ(read.values, tensor.values) << name;
  }
}

TEST(TensorFile, OtherNamesAreRefused) {
  EXPECT_THAT(ValidateTensorPath(""), IsOk());
  EXPECT_THAT(ValidateTensorPath("out.pt"), IsOk());
  EXPECT_THAT(ValidateTensorPath("out.bin"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(".safetensors, .npy or .pt")));
  EXPECT_THAT(ReadTensorFile("out.pt", "sample"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected a .safetensors or .npy")));
}

TEST(CompareTensors, AppliesTheTolerance) {
  const FloatTensor expected = {{3}, {1, 100, 0}};
  const FloatTensor actual = {{3}, {1.0005f, 100.05f, 0.0005f}};
  EXPECT_TRUE(
      CompareTensors(actual, expected, {.rtol = 1e-3, .atol = 1e-3}).is_equal);
  const TensorDifference difference =
      CompareTensors(actual, expected, {.rtol = 1e-3, .atol = 0});
  EXPECT_FALSE(difference.is_equal);
  EXPECT_EQ(difference.outside, 1);
  EXPECT_EQ(difference.first_outside, 2);
  EXPECT_NEAR(difference.max_abs, 0.05, 1e-5);
}

TEST(CompareTensors, NonFiniteValuesMatchThemselvesOnly) {
  const std::vector<float> values = {1, kNan, kInf, -kInf};
  for (const float a : values) {
    for (const float b : values) {
      const bool same = std::isnan(a) ? std::isnan(b) : a == b;
      EXPECT_EQ(CompareTensors({{1}, {a}}, {{1}, {b}}, {.rtol = 1, .atol = 9})
                    .is_equal,
                same)
          << a << " " << b;
    }
  }
}

TEST(CompareTensors, OtherShapesDiffer) {
  const TensorDifference difference =
      CompareTensors({{2}, {1, 2}}, {{2, 1}, {1, 2}}, {});
  EXPECT_FALSE(difference.is_equal);
  EXPECT_THAT(difference.ToString(), HasSubstr("[2, 1]"));
}

}  // namespace
}  // namespace firstframe
