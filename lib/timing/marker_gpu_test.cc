// Markers on the device: what events see against the host clock.

#include <string>

#include "gtest/gtest.h"
#include "lib/cuda/runtime.h"
#include "lib/cuda/stream.h"
#include "lib/testing/status_matchers.h"
#include "lib/timing/marker.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;

class MarkerGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto count = runtime_.DeviceCount();
    if (!count.ok() || *count == 0) GTEST_SKIP() << "no device";
    ASSERT_THAT(runtime_.SetDevice(0), IsOk());
    auto buffer = runtime_.Allocate(kBytes);
    ASSERT_THAT(buffer, IsOk());
    buffer_ = *buffer;
  }
  void TearDown() override {
    if (buffer_ != nullptr) {
      EXPECT_THAT(runtime_.Free(buffer_), IsOk());
    }
  }

  static constexpr size_t kBytes = size_t{1} << 30;
  cuda::Runtime& runtime_ = cuda::GetRuntime();
  void* buffer_ = nullptr;
};

TEST_F(MarkerGpuTest, PairsSeeTheDeviceWorkThatTheHostOnlyQueued) {
  ASSERT_OK_AND_ASSIGN(const cuda::Stream stream, cuda::Stream::Create());
  MarkerSource source(MonotonicClock::Get(), {&runtime_, 0, stream.handle()});
  for (int round = 0; round < 3; ++round) {
    ASSERT_THAT(source.Synchronize(), IsOk());
    const int64_t before = source.clock().NowNs();
    MarkerPair pair{source.Mark(), {}};
    for (int i = 0; i < 50; ++i) {
      ASSERT_THAT(stream.FillAsync(buffer_, 7, kBytes), IsOk());
    }
    pair.end = source.Mark();
    const int64_t queued_ns = pair.end.host_ns - pair.start.host_ns;
    ASSERT_THAT(source.Synchronize(), IsOk());
    const int64_t wall_ns = source.clock().NowNs() - before;
    ASSERT_TRUE(source.IsReady(pair));
    const int64_t span_ns = source.SpanNs(pair);
    EXPECT_GT(span_ns, queued_ns) << "50 GiB take longer than their launch";
    EXPECT_LE(span_ns, wall_ns + 10'000);
    EXPECT_GT(static_cast<double>(span_ns),
              0.95 * static_cast<double>(wall_ns));
    RecordProperty("span_ns", std::to_string(span_ns));
    RecordProperty("wall_ns", std::to_string(wall_ns));
    source.Recycle(pair);
  }
  EXPECT_EQ(source.failures(), 0);
}

}  // namespace
}  // namespace firstframe
