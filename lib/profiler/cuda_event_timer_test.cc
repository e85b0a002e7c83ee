#include "lib/profiler/cuda_event_timer.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/profiler/tick_clock.h"

namespace firstframe {
namespace {

using ::testing::IsEmpty;

// A driver whose device's clock stands where the test puts it.
struct FakeDriver {
  void* current = reinterpret_cast<void*>(1);
  int64_t device_ns = 0;
  int64_t done_until_ns = INT64_MAX;  // of the device's time
  int capturing = 0;
  bool refuses = false;
  void* gone = nullptr;        // a context that was destroyed
  std::vector<int64_t> times;  // of each event, by its number
  int pushed = 0;
  int capture_mode = 0;
};
FakeDriver* fake = nullptr;

int64_t& TimeOf(void* event) {
  return fake->times[reinterpret_cast<size_t>(event) - 1];
}

CudaEventApi FakeApi() {
  CudaEventApi api = {};
  api.get_context = [](void** context) {
    *context = fake->current;
    return 0;
  };
  api.push_context = [](void* context) {
    if (context == fake->gone) return 1;
    ++fake->pushed;
    return 0;
  };
  api.pop_context = [](void**) {
    --fake->pushed;
    return 0;
  };
  api.get_device = [](int* device) {
    *device = 3;
    return 0;
  };
  api.create = [](void** event, unsigned) {
    fake->times.push_back(0);
    *event = reinterpret_cast<void*>(fake->times.size());
    return 0;
  };
  api.record = [](void* event, void*) {
    if (fake->refuses) return 1;
    TimeOf(event) = fake->device_ns;
    return 0;
  };
  api.query = [](void* event) {
    return TimeOf(event) <= fake->done_until_ns ? 0 : 600;
  };
  api.elapsed = [](float* milliseconds, void* start, void* end) {
    *milliseconds = static_cast<float>(
        static_cast<double>(TimeOf(end) - TimeOf(start)) * 1e-6);
    return 0;
  };
  api.is_capturing = [](void*, int* capturing) {
    *capturing = fake->capturing;
    return 0;
  };
  api.exchange_capture_mode = [](int* mode) {
    std::swap(*mode, fake->capture_mode);
    return 0;
  };
  return api;
}

class CudaEventTimerTest : public ::testing::Test {
 protected:
  void SetUp() override { fake = &driver_; }
  std::vector<CudaEventTimer::Time> Collect(CudaEventTimer& timer) {
    std::vector<CudaEventTimer::Time> times;
    timer.Collect(
        [&](const CudaEventTimer::Time& time) { times.push_back(time); });
    EXPECT_EQ(driver_.pushed, 0) << "contexts are popped again";
    EXPECT_EQ(driver_.capture_mode, 0) << "the thread's mode is back";
    return times;
  }
  FakeDriver driver_;
};

TEST_F(CudaEventTimerTest, MeasuresOnTheDevicesClock) {
  CudaEventTimer timer(FakeApi());
  const int64_t before = TickClock::MonotonicNs();
  timer.Begin(1, 10);
  timer.Begin(2, 20);
  driver_.device_ns = 5'000'000;
  timer.End(2);
  driver_.device_ns = 8'000'000;
  timer.End(1);
  const auto times = Collect(timer);
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].region, 2u);
  EXPECT_EQ(times[0].name, 20u);
  EXPECT_EQ(times[0].device, 3);
  EXPECT_EQ(times[0].duration_ns, 5'000'000);
  EXPECT_EQ(times[1].duration_ns, 8'000'000);
  EXPECT_GE(times[1].start_ns, before) << "no event runs before it is recorded";
  EXPECT_EQ(timer.dropped(), 0);
}

TEST_F(CudaEventTimerTest, WaitsForTheDevice) {
  CudaEventTimer timer(FakeApi());
  timer.Begin(1, 10);
  timer.End(1);
  driver_.done_until_ns = -1;
  EXPECT_THAT(Collect(timer), IsEmpty());
  driver_.done_until_ns = INT64_MAX;
  EXPECT_EQ(Collect(timer).size(), 1u);
  EXPECT_THAT(Collect(timer), IsEmpty());
}

TEST_F(CudaEventTimerTest, ReusesItsEvents) {
  CudaEventTimer timer(FakeApi());
  for (uint32_t i = 1; i <= 100; ++i) {
    timer.Begin(i, 1);
    timer.End(i);
    EXPECT_EQ(Collect(timer).size(), 1u);
  }
  EXPECT_EQ(driver_.times.size(), 3u) << "a base, a start, an end";
}

TEST_F(CudaEventTimerTest, LeavesCapturesAndThreadsWithoutAContextAlone) {
  CudaEventTimer timer(FakeApi());
  driver_.current = nullptr;
  timer.Begin(1, 1);
  timer.End(1);
  EXPECT_EQ(timer.dropped(), 0);
  driver_.current = reinterpret_cast<void*>(1);
  driver_.capturing = 1;
  timer.Begin(2, 1);
  timer.End(2);
  EXPECT_TRUE(driver_.times.empty());
  driver_.capturing = 0;
  timer.Begin(3, 1);
  driver_.capturing = 1;
  timer.End(3);
  EXPECT_THAT(Collect(timer), IsEmpty());
  driver_.capturing = 0;
  driver_.refuses = true;
  timer.Begin(4, 1);
  EXPECT_EQ(timer.dropped(), 3);
}

TEST_F(CudaEventTimerTest, AContextThatIsGoneTakesItsOwnTimesAlone) {
  CudaEventTimer timer(FakeApi());
  driver_.current = reinterpret_cast<void*>(2);
  timer.Begin(1, 1);
  timer.End(1);
  driver_.current = reinterpret_cast<void*>(1);
  timer.Begin(2, 1);
  timer.End(2);
  driver_.gone = reinterpret_cast<void*>(2);
  const auto times = Collect(timer);
  ASSERT_EQ(times.size(), 1u);
  EXPECT_EQ(times[0].region, 2u);
  EXPECT_EQ(timer.dropped(), 1);
}

TEST_F(CudaEventTimerTest, HoldsABoundedNumber) {
  CudaEventTimer timer(FakeApi(), 2);
  for (uint32_t i = 1; i <= 3; ++i) timer.Begin(i, 1);
  EXPECT_EQ(timer.dropped(), 1);
  for (uint32_t i = 1; i <= 3; ++i) timer.End(i);
  EXPECT_EQ(Collect(timer).size(), 2u);
}

TEST_F(CudaEventTimerTest, StaysExactOverHours) {
  CudaEventTimer timer(FakeApi());
  int64_t last = 0;
  for (uint32_t i = 1; i <= 500; ++i) {
    driver_.device_ns = i * int64_t{9'000'000'000};
    timer.Begin(i, 1);
    timer.End(i);
    const auto times = Collect(timer);
    ASSERT_EQ(times.size(), 1u);
    if (i > 2) {
      EXPECT_NEAR(static_cast<double>(times[0].start_ns - last), 9e9, 1e4);
    }
    last = times[0].start_ns;
  }
}

TEST(CudaEventApi, WithoutADriverThereIsNone) {
  EXPECT_FALSE(CudaEventApi{}.complete());
}

}  // namespace
}  // namespace firstframe
