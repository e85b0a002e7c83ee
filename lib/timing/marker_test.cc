#include "lib/timing/marker.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/fake_clock.h"
#include "lib/testing/fake_cuda.h"
#include "lib/testing/status_matchers.h"
#include "lib/timing/deferred_queue.h"

namespace firstframe {
namespace {

using ::firstframe::testing::FakeClock;
using ::firstframe::testing::FakeCuda;
using ::firstframe::testing::IsOk;
using ::testing::ElementsAre;

class MarkerTest : public ::testing::Test {
 protected:
  void UseDevice() {
    ASSERT_THAT(cuda_.SetDevice(0), IsOk());
    stream_ = *cuda_.CreateStream(0);
  }
  MarkerDevice Device() { return {&cuda_, 0, stream_}; }
  void TearDown() override {
    if (stream_ != nullptr) {
      EXPECT_THAT(cuda_.DestroyStream(stream_), IsOk());
    }
  }

  FakeClock clock_;
  FakeCuda cuda_;
  cuda::StreamHandle stream_ = nullptr;
};

TEST_F(MarkerTest, HostOnlyTakesTheHostSpan) {
  MarkerSource source(clock_);
  MarkerPair pair{source.Mark(), {}};
  clock_.Advance(70);
  pair.end = source.Mark();
  EXPECT_TRUE(source.IsReady(pair));
  EXPECT_EQ(source.SpanNs(pair), 70);
  EXPECT_THAT(source.Synchronize(), IsOk());
  EXPECT_FALSE(source.HasDevice());
}

// Measuring must not bring a context up that the run would not have.
TEST_F(MarkerTest, WithoutAContextTouchesNoDevice) {
  MarkerSource source(clock_, Device());
  const MarkerPair pair{source.Mark(), source.Mark()};
  EXPECT_EQ(pair.start.event, nullptr);
  EXPECT_EQ(cuda_.calls("CreateEvent"), 0);
  EXPECT_EQ(cuda_.calls("SetDevice"), 0);
  EXPECT_EQ(source.DeviceName(), "");
  UseDevice();
  EXPECT_TRUE(source.HasDevice()) << "noticed once it is there";
  EXPECT_EQ(source.DeviceName(), "cuda:0");
}

TEST_F(MarkerTest, ResolvesToTheLargerSpanInBothDirections) {
  UseDevice();
  MarkerSource source(clock_, Device());
  // Kernels outlast their submission.
  MarkerPair device_bound{source.Mark(), {}};
  clock_.Advance(10);
  cuda_.AdvanceNs(500);
  device_bound.end = source.Mark();
  EXPECT_EQ(source.SpanNs(device_bound), 500);
  // A module on the host leaves the device idle.
  MarkerPair host_bound{source.Mark(), {}};
  clock_.Advance(900);
  cuda_.AdvanceNs(3);
  host_bound.end = source.Mark();
  EXPECT_EQ(source.SpanNs(host_bound), 900);
  source.Recycle(device_bound);
  source.Recycle(host_bound);
}

TEST_F(MarkerTest, FollowsAProgramThatChangesStreams) {
  UseDevice();
  cuda::StreamHandle other = *cuda_.CreateStream(0);
  std::vector<cuda::StreamHandle> asked;
  MarkerDevice device = Device();
  cuda::StreamHandle current = stream_;
  device.current_stream = [&] {
    asked.push_back(current);
    return current;
  };
  MarkerSource source(clock_, device);
  MarkerPair pair{source.Mark(), {}};
  current = other;
  cuda_.AdvanceNs(40);
  pair.end = source.Mark();
  EXPECT_THAT(asked, ElementsAre(stream_, other));
  EXPECT_EQ(source.SpanNs(pair), 40);
  EXPECT_THAT(source.Synchronize(), IsOk());
  EXPECT_EQ(cuda_.calls("SynchronizeDevice"), 1);
  EXPECT_EQ(cuda_.calls("SynchronizeStream"), 0);
  source.Recycle(pair);
  EXPECT_THAT(cuda_.DestroyStream(other), IsOk());
}

TEST_F(MarkerTest, UnreadyPairsFallBackToTheHostWithoutWaiting) {
  UseDevice();
  MarkerSource source(clock_, Device());
  cuda_.Hold();
  MarkerPair pair{source.Mark(), {}};
  clock_.Advance(10);
  pair.end = source.Mark();
  EXPECT_FALSE(source.IsReady(pair));
  EXPECT_EQ(source.SpanNs(pair), 10);
  EXPECT_EQ(cuda_.calls("SynchronizeStream"), 0);
  EXPECT_EQ(cuda_.calls("ElapsedNs"), 0) << "reading an unready event fails";
  EXPECT_THAT(source.Synchronize(), IsOk());
  EXPECT_TRUE(source.IsReady(pair));
  source.Recycle(pair);
}

TEST_F(MarkerTest, PoolsItsEvents) {
  UseDevice();
  {
    MarkerSource source(clock_, Device());
    for (int i = 0; i < 100; ++i) {
      const MarkerPair pair{source.Mark(), source.Mark()};
      source.Recycle(pair);
    }
    EXPECT_EQ(cuda_.calls("CreateEvent"), 2);
    EXPECT_EQ(cuda_.calls("RecordEvent"), 200);
  }
  EXPECT_EQ(cuda_.live_handles(), 1) << "the stream alone is left";
}

TEST_F(MarkerTest, DeviceFailuresCostTheEventNotTheRun) {
  UseDevice();
  MarkerSource source(clock_, Device());
  cuda_.FailNext("CreateEvent", absl::InternalError("sticky"));
  EXPECT_EQ(source.Mark().event, nullptr);
  cuda_.FailNext("RecordEvent", absl::InternalError("sticky"));
  EXPECT_EQ(source.Mark().event, nullptr);
  EXPECT_EQ(source.failures(), 2);
  MarkerPair pair{source.Mark(), source.Mark()};
  clock_.Advance(5);
  cuda_.FailNext("ElapsedNs", absl::InternalError("sticky"));
  EXPECT_EQ(source.SpanNs(pair), 0) << "the host span";
  source.Recycle(pair);
}

TEST(DeferredQueue, SettlesInOrderWhenReadyOrOverdue) {
  DeferredQueue<int> queue;
  std::vector<int> settled;
  int device = 0;  // items below it are done
  const auto ready = [&](int item) { return item < device; };
  const auto settle = [&](int item) { settled.push_back(item); };
  for (int item = 0; item < 2; ++item) {
    queue.Push(item);
    queue.Drain(ready, settle);
  }
  EXPECT_THAT(settled, ElementsAre());
  queue.Push(2);
  queue.Drain(ready, settle);
  EXPECT_THAT(settled, ElementsAre(0)) << "two younger items wait behind it";
  device = 2;
  queue.Drain(ready, settle);
  EXPECT_THAT(settled, ElementsAre(0, 1));
  queue.Drain(ready, settle, /*force=*/true);
  EXPECT_THAT(settled, ElementsAre(0, 1, 2));
  EXPECT_EQ(queue.size(), 0u);
}

}  // namespace
}  // namespace firstframe
