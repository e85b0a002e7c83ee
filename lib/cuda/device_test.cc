#include "lib/cuda/device.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/fake_cuda.h"
#include "lib/testing/status_matchers.h"

namespace firstframe::cuda {
namespace {

using ::firstframe::testing::FakeCuda;
using ::firstframe::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DeviceSpec, ParsesEveryFormAndPrintsItBack) {
  for (const char* text : {"auto", "cpu", "cuda:0", "cuda:12"}) {
    ASSERT_OK_AND_ASSIGN(const DeviceSpec spec, ParseDeviceSpec(text));
    EXPECT_EQ(DeviceSpecToString(spec), text);
  }
  ASSERT_OK_AND_ASSIGN(const DeviceSpec spec, ParseDeviceSpec("cuda"));
  EXPECT_EQ(DeviceSpecToString(spec), "cuda:0");
}

TEST(DeviceSpec, RefusesEverythingElse) {
  for (const char* text :
       {"", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:+1", "cuda:01", "cuda: 1",
        "cuda:1x", "cuda:99999999999", "cpu:0"}) {
    EXPECT_THAT(ParseDeviceSpec(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("expected auto, cpu, cuda or cuda:N")))
        << text;
  }
}

TEST(ResolveDevice, AutoTakesTheGpuWhenThereIsOne) {
  FakeCuda cuda;
  ASSERT_OK_AND_ASSIGN(DeviceSpec spec, ResolveDevice({}, cuda));
  EXPECT_EQ(DeviceSpecToString(spec), "cuda:0");
  EXPECT_FALSE(cuda.HasContext(0));

  cuda.FailNext("DeviceCount", absl::UnavailableError("no driver"));
  ASSERT_OK_AND_ASSIGN(spec, ResolveDevice({}, cuda));
  EXPECT_EQ(DeviceSpecToString(spec), "cpu");

  cuda.device_count = 0;
  ASSERT_OK_AND_ASSIGN(spec, ResolveDevice({}, cuda));
  EXPECT_EQ(DeviceSpecToString(spec), "cpu");
}

TEST(ResolveDevice, CudaSaysWhatIsMissing) {
  FakeCuda cuda;
  cuda.FailNext("DeviceCount", absl::UnavailableError("no driver"));
  EXPECT_THAT(ResolveDevice({DeviceKind::kCuda, 0}, cuda),
              StatusIs(absl::StatusCode::kUnavailable, "cuda:0: no driver"));
  EXPECT_THAT(ResolveDevice({DeviceKind::kCuda, 3}, cuda),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("cuda:3"), HasSubstr("1 GPU"))));
}

TEST(ResolveDevice, CpuAsksNothing) {
  FakeCuda cuda;
  ASSERT_OK_AND_ASSIGN(const DeviceSpec spec,
                       ResolveDevice({DeviceKind::kCpu}, cuda));
  EXPECT_EQ(spec.kind, DeviceKind::kCpu);
  EXPECT_EQ(cuda.calls("DeviceCount"), 0);
}

// On a machine without a GPU, the real runtime (or its stub) must name what is
// missing with a code that tools turn into exit 3.
TEST(ResolveDevice, RealRuntimeIsHonest) {
  const absl::StatusOr<DeviceSpec> spec = ResolveDevice({DeviceKind::kCuda, 0});
  if (spec.ok()) GTEST_SKIP() << "this machine has a GPU";
  if (IsBuiltWithCuda()) {
    EXPECT_THAT(spec,
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("nvidia-")));
  } else {
    EXPECT_THAT(spec, StatusIs(absl::StatusCode::kUnimplemented,
                               HasSubstr("built without CUDA")));
  }
  EXPECT_FALSE(GetRuntime().HasContext(0));
}

TEST(VersionToString, SplitsMajorAndMinor) {
  EXPECT_EQ(VersionToString(13000), "13.0");
  EXPECT_EQ(VersionToString(12080), "12.8");
  EXPECT_EQ(VersionToString(0), "none");
}

}  // namespace
}  // namespace firstframe::cuda
