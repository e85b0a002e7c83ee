// flops --measure on a device: every product is right, and has a rate or a
// reason for none.

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/cuda/runtime.h"
#include "lib/flops/measured_peak.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

TEST(MeasurePeakGpuTest, EveryArithmeticHasARightProduct) {
  cuda::Runtime& runtime = cuda::GetRuntime();
  const auto count = runtime.DeviceCount();
  if (!count.ok() || *count == 0) GTEST_SKIP() << "no device";
  const cuda::LibrarySearch search = cuda::MakeLibrarySearch(
      Variable("VIRTUAL_ENV"), Variable("CONDA_PREFIX"), Variable("PATH"));
  const auto peak = MeasurePeak(
      runtime, search, {.size = 1024, .rounds = 3, .sustained_s = 0.05});
  ASSERT_THAT(peak, IsOk());  // DataLoss when a product is wrong
  ASSERT_EQ(peak->rates.size(), 5u);
  for (const MeasuredRate& rate : peak->rates) {
    SCOPED_TRACE(std::string(MathTypeName(rate.math)));
    if (rate.math == MathType::kFp8 && !rate.unavailable_reason.empty()) {
      continue;  // before Ada
    }
    EXPECT_EQ(rate.unavailable_reason, "");
    EXPECT_GT(rate.best_tflops, 0);
    EXPECT_GE(rate.best_tflops, rate.median_tflops);
    EXPECT_GT(rate.sustained_tflops.value_or(0), 0);
    if (rate.math == MathType::kFp32) {
      EXPECT_LT(rate.largest_error, 1e-4);
    }
  }
  EXPECT_GT(peak->copy_gb_per_s, 0);
  // Events and a host clock around them see the same work, launches aside.
  EXPECT_LE(peak->event_s, peak->wall_s);
}

}  // namespace
}  // namespace firstframe
