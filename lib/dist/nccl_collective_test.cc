#include "lib/dist/nccl_collective.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/stream.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

// On the device machine one rank is a whole group; two ranks need two GPUs and
// are run by weight_bench there.
TEST(NcclCollective, OneRankGroup) {
  cuda::Runtime& runtime = cuda::GetRuntime();
  const absl::StatusOr<int> devices = runtime.DeviceCount();
  NcclOptions options;
  options.runtime = &runtime;
  if (!devices.ok() || *devices == 0) {
    // Without a GPU the failure says what is missing, and nothing hangs.
    EXPECT_FALSE(
        JoinNcclGroup(MakeSoleCollective(MemoryKind::kHost), options).ok());
    return;
  }
  ASSERT_THAT(runtime.SetDevice(0), IsOk());
  ASSERT_OK_AND_ASSIGN(cuda::Stream stream, cuda::Stream::Create());
  options.stream = stream.handle();
  auto group = JoinNcclGroup(MakeSoleCollective(MemoryKind::kHost), options);
  if (absl::IsUnavailable(group.status())) GTEST_SKIP() << group.status();
  ASSERT_THAT(group, IsOk());
  ASSERT_OK_AND_ASSIGN(const cuda::DeviceBuffer buffer,
                       cuda::DeviceBuffer::Allocate(1 << 20));
  EXPECT_THAT((*group)->Broadcast(buffer.data(), 1 << 20, 0), IsOk());
  EXPECT_THAT((*group)->AllGather(buffer.data(), 1 << 20), IsOk());
  EXPECT_THAT((*group)->Wait(), IsOk());
  EXPECT_THAT(Barrier(**group), IsOk());
  (*group)->Fail(absl::DataLossError("x"));
  EXPECT_THAT((*group)->Wait(), StatusIs(absl::StatusCode::kAborted,
                                         HasSubstr("rank 0 failed: x")));
}

}  // namespace
}  // namespace firstframe
