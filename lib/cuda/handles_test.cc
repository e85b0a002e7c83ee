// Stream, Event, EventPool and the buffers over the fake runtime.

#include <cstring>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/cuda/event.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/stream.h"
#include "lib/testing/fake_cuda.h"
#include "lib/testing/status_matchers.h"

namespace firstframe::cuda {
namespace {

using ::firstframe::testing::FakeCuda;
using ::firstframe::testing::IsOk;
using ::firstframe::testing::IsOkAndHolds;
using ::firstframe::testing::StatusIs;
using ::testing::_;
using ::testing::Not;

TEST(Stream, DestroysWhatItCreatedOnce) {
  FakeCuda cuda;
  {
    ASSERT_OK_AND_ASSIGN(Stream first, Stream::Create(0, cuda));
    ASSERT_OK_AND_ASSIGN(Stream second, Stream::Create(-1, cuda));
    Stream moved = std::move(first);
    moved = std::move(second);
    EXPECT_EQ(cuda.live_handles(), 2);
  }
  EXPECT_EQ(cuda.live_handles(), 0);
}

TEST(Stream, CopiesInOrder) {
  FakeCuda cuda;
  ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create(0, cuda));
  ASSERT_OK_AND_ASSIGN(const DeviceBuffer device,
                       DeviceBuffer::Allocate(8, cuda));
  const char text[8] = "1234567";
  char back[8] = "";
  cuda.Hold();
  ASSERT_THAT(stream.CopyAsync(device.data(), text, 8), IsOk());
  ASSERT_THAT(stream.FillAsync(device.data(), '9', 2), IsOk());
  const Copy halves[] = {{back, device.data(), 4},
                         {back + 4, device.data() + 4, 4}};
  ASSERT_THAT(stream.CopyBatchAsync(halves), IsOk());
  EXPECT_THAT(stream.IsIdle(), IsOkAndHolds(false));
  EXPECT_STREQ(back, "");
  ASSERT_THAT(stream.Synchronize(), IsOk());
  EXPECT_STREQ(back, "9934567");
}

TEST(Event, TellsTimeOnceComplete) {
  FakeCuda cuda;
  ASSERT_OK_AND_ASSIGN(Event start, Event::Create(EventKind::kTiming, cuda));
  ASSERT_OK_AND_ASSIGN(Event end, Event::Create(EventKind::kTiming, cuda));
  EXPECT_THAT(start.IsComplete(), IsOkAndHolds(true));
  EXPECT_THAT(Event::ElapsedNs(start, end), Not(IsOk()));
  ASSERT_THAT(start.Record(nullptr), IsOk());
  cuda.Hold();
  ASSERT_THAT(end.Record(nullptr), IsOk());
  EXPECT_THAT(end.IsComplete(), IsOkAndHolds(false));
  cuda.AdvanceNs(1500);
  cuda.Release();
  EXPECT_THAT(end.IsComplete(), IsOkAndHolds(true));
  EXPECT_THAT(Event::ElapsedNs(start, end), IsOkAndHolds(1500));
}

TEST(EventPool, ReusesWhatIsGivenBack) {
  FakeCuda cuda;
  {
    EventPool pool(EventKind::kOrdering, cuda);
    ASSERT_OK_AND_ASSIGN(Event event, pool.Take());
    const EventHandle handle = event.handle();
    pool.GiveBack(std::move(event));
    ASSERT_OK_AND_ASSIGN(Event again, pool.Take());
    EXPECT_EQ(again.handle(), handle);
    ASSERT_OK_AND_ASSIGN(Event other, pool.Take());
    EXPECT_NE(other.handle(), handle);
    EXPECT_EQ(cuda.calls("CreateEvent"), 2);
  }
  EXPECT_EQ(cuda.live_handles(), 0);
}

TEST(DeviceBuffer, FreesWhatItAllocated) {
  FakeCuda cuda;
  {
    ASSERT_OK_AND_ASSIGN(DeviceBuffer buffer,
                         DeviceBuffer::Allocate(100, cuda));
    ASSERT_OK_AND_ASSIGN(DeviceBuffer ordered,
                         DeviceBuffer::AllocateAsync(50, nullptr, cuda));
    ASSERT_OK_AND_ASSIGN(PinnedBuffer pinned, PinnedBuffer::Allocate(25, cuda));
    EXPECT_EQ(pinned.span().size(), 25u);
    EXPECT_EQ(cuda.live_bytes(), 175);
    buffer = DeviceBuffer();
    DeviceBuffer taken = std::move(ordered);
    EXPECT_EQ(taken.size_bytes(), 50u);
    EXPECT_TRUE(ordered.empty());
  }
  EXPECT_EQ(cuda.live_bytes(), 0);
  EXPECT_EQ(cuda.calls("FreeAsync"), 1);
}

TEST(DeviceBuffer, EmptyAllocatesNothing) {
  FakeCuda cuda;
  ASSERT_OK_AND_ASSIGN(const DeviceBuffer buffer,
                       DeviceBuffer::Allocate(0, cuda));
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(cuda.calls("Allocate"), 0);
}

TEST(DeviceBuffer, TooLargeIsResourceExhausted) {
  FakeCuda cuda;
  cuda.memory_bytes = 64;
  EXPECT_THAT(DeviceBuffer::Allocate(65, cuda),
              StatusIs(absl::StatusCode::kResourceExhausted, _));
}

TEST(HostRegistration, UnpinsAtTheEnd) {
  FakeCuda cuda;
  std::vector<char> memory(64);
  {
    ASSERT_OK_AND_ASSIGN(
        HostRegistration registration,
        HostRegistration::Register(memory.data(), memory.size(), false, cuda));
    const HostRegistration moved = std::move(registration);
    EXPECT_EQ(cuda.calls("UnregisterHost"), 0);
  }
  EXPECT_EQ(cuda.calls("UnregisterHost"), 1);
}

}  // namespace
}  // namespace firstframe::cuda
