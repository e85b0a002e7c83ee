#include "lib/cuda/cuda_status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe::cuda {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CudaStatus, SuccessIsOk) {
  EXPECT_THAT(StatusFromError(0, "cudaSuccess", "no error", "f()"), IsOk());
  EXPECT_THAT(ToStatus(0, "f()"), IsOk());
}

TEST(CudaStatus, MissingDriverNamesThePackage) {
  EXPECT_THAT(
      StatusFromError(35, "cudaErrorInsufficientDriver", "driver too old",
                      "cudaGetDeviceCount(&count)"),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("cudaGetDeviceCount: "),
                     HasSubstr("(35): driver too old"),
                     HasSubstr("nvidia-driver"), Not(HasSubstr("&count")))));
}

TEST(CudaStatus, MapsCodesToWhatACallerCanDo) {
  const auto code_of = [](int error) {
    return StatusFromError(error, "e", "d", "f()").code();
  };
  EXPECT_EQ(code_of(1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(2), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code_of(100), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code_of(101), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(209), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code_of(801), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code_of(700), absl::StatusCode::kInternal);
  EXPECT_EQ(code_of(-1), absl::StatusCode::kInternal);
}

absl::Status CallThatReturns(int code) {
  FF_CUDA_RETURN_IF_ERROR(code);
  return absl::OkStatus();
}

TEST(CudaStatus, MacroReturnsEarly) {
  EXPECT_THAT(CallThatReturns(0), IsOk());
  EXPECT_THAT(CallThatReturns(2),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("(2)")));
}

}  // namespace
}  // namespace firstframe::cuda
