#include "lib/flops/peak_choice.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

PeakChoice Choose(const PeakWish& wish, MathType math = MathType::kBf16) {
  const auto choice = ChoosePeak(wish, math, BuiltinDevicePeaks());
  EXPECT_TRUE(choice.ok()) << choice.status();
  return choice.value_or(PeakChoice{});
}

TEST(PeakChoice, NothingAskedForIsNoPeak) {
  const PeakChoice choice = Choose({});
  EXPECT_EQ(choice.tflops, std::nullopt);
  EXPECT_EQ(choice.reason, "no --device_name and no --peak_tflops");
}

TEST(PeakChoice, TheTableKnowsTheDevice) {
  const PeakChoice choice = Choose({.device_name = "NVIDIA H200"});
  EXPECT_EQ(choice.tflops, 989);
  EXPECT_EQ(choice.reason, "H200 SXM, bf16 dense, NVIDIA H200 datasheet");
  EXPECT_EQ(Choose({.device_name = "NVIDIA H200"}, MathType::kFp8).tflops,
            1979);
}

TEST(PeakChoice, AnUnknownDeviceHasAReason) {
  const PeakChoice choice = Choose({.device_name = "NVIDIA H200 MIG 1g.18gb"});
  EXPECT_EQ(choice.tflops, std::nullopt);
  EXPECT_THAT(choice.reason, HasSubstr("a MIG slice"));
}

TEST(PeakChoice, ABoardWithoutThisArithmeticHasAReason) {
  const PeakChoice choice =
      Choose({.device_name = "NVIDIA A100-SXM4-80GB"}, MathType::kFp8);
  EXPECT_EQ(choice.tflops, std::nullopt);
  EXPECT_EQ(choice.reason, "no fp8 peak is known for A100");
}

TEST(PeakChoice, TheVariableWinsOverTheTableTheFlagOverBoth) {
  PeakWish wish = {.device_name = "NVIDIA H200", .variable = "800"};
  EXPECT_EQ(Choose(wish).tflops, 800);
  EXPECT_EQ(Choose(wish).reason, "VIDEOX_PERF_PEAK_TFLOPS");
  EXPECT_TRUE(Choose(wish).device.has_value());
  wish.flag_tflops = 700;
  EXPECT_EQ(Choose(wish).tflops, 700);
  EXPECT_EQ(Choose(wish).reason, "--peak_tflops");
  wish.flag_tflops = 0;  // given as none: neither flag nor variable
  EXPECT_EQ(Choose(wish).tflops, 989);
}

TEST(PeakChoice, RefusesAVariableThatIsNoNumber) {
  for (const double value : {-1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_THAT(ChoosePeak({.flag_tflops = value}, MathType::kBf16,
                           BuiltinDevicePeaks())
                    .status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("expected a positive number")));
  }
  for (const char* value : {"fast", "nan", "inf", "1e", "-3"}) {
    EXPECT_THAT(
        ChoosePeak({.variable = value}, MathType::kBf16, BuiltinDevicePeaks())
            .status(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("expected a number")));
  }
}

}  // namespace
}  // namespace firstframe
