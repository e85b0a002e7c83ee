// The runtime on a real device; skipped where there is none.

#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/cuda/device.h"
#include "lib/cuda/event.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/runtime.h"
#include "lib/cuda/stream.h"
#include "lib/testing/status_matchers.h"

namespace firstframe::cuda {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::IsOkAndHolds;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::Not;

class RuntimeGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<int> count = GetRuntime().DeviceCount();
    if (!count.ok()) GTEST_SKIP() << count.status();
    if (*count == 0) GTEST_SKIP() << "no GPU";
  }
};

// First in the file: later tests create the context.
TEST_F(RuntimeGpu, ContextAppearsWithTheFirstUse) {
  EXPECT_FALSE(GetRuntime().HasContext(0));
  ASSERT_THAT(GetRuntime().SetDevice(0), IsOk());
  EXPECT_TRUE(GetRuntime().HasContext(0));
  EXPECT_THAT(GetRuntime().CurrentDevice(), IsOkAndHolds(0));
}

TEST_F(RuntimeGpu, DescribesTheDevice) {
  ASSERT_OK_AND_ASSIGN(const DeviceProperties properties,
                       GetRuntime().GetProperties(0));
  EXPECT_FALSE(properties.name.empty());
  EXPECT_THAT(properties.uuid, ::testing::StartsWith("GPU-"));
  EXPECT_EQ(properties.pci_bus_id.size(), 12u);
  EXPECT_GT(properties.multiprocessors, 0);
  EXPECT_GT(properties.memory_bytes, int64_t{1} << 30);
  EXPECT_GT(properties.memory_bandwidth_bytes_per_s, int64_t{10'000'000'000});
  ASSERT_OK_AND_ASSIGN(const Versions versions, GetRuntime().GetVersions());
  EXPECT_GE(versions.driver, versions.runtime / 1000 * 1000);
}

TEST_F(RuntimeGpu, CopiesThroughTheDeviceInBatches) {
  constexpr size_t kSize = 1 << 20;
  ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create());
  ASSERT_OK_AND_ASSIGN(const PinnedBuffer from, PinnedBuffer::Allocate(kSize));
  ASSERT_OK_AND_ASSIGN(const PinnedBuffer to, PinnedBuffer::Allocate(kSize));
  ASSERT_OK_AND_ASSIGN(const DeviceBuffer device,
                       DeviceBuffer::AllocateAsync(kSize, stream.handle()));
  for (size_t i = 0; i < kSize; ++i) {
    from.data()[i] = static_cast<std::byte>(i * 7 + (i >> 8));
  }
  std::memset(to.data(), 0xEE, kSize);
  std::vector<Copy> up;
  std::vector<Copy> down;
  constexpr size_t kPart = kSize / 16;
  for (size_t i = 0; i < kSize; i += kPart) {
    up.push_back({device.data() + i, from.data() + i, kPart});
    down.push_back({to.data() + i, device.data() + i, kPart});
  }
  ASSERT_THAT(stream.CopyBatchAsync(up), IsOk());
  ASSERT_THAT(stream.CopyBatchAsync(down), IsOk());
  ASSERT_THAT(stream.Synchronize(), IsOk());
  EXPECT_EQ(std::memcmp(from.data(), to.data(), kSize), 0);
}

TEST_F(RuntimeGpu, TimesWorkWithEvents) {
  constexpr size_t kSize = 256 << 20;
  ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create());
  ASSERT_OK_AND_ASSIGN(const DeviceBuffer device,
                       DeviceBuffer::Allocate(kSize));
  ASSERT_OK_AND_ASSIGN(Event start, Event::Create(EventKind::kTiming));
  ASSERT_OK_AND_ASSIGN(Event end, Event::Create(EventKind::kTiming));
  ASSERT_THAT(start.Record(stream.handle()), IsOk());
  ASSERT_THAT(stream.FillAsync(device.data(), 1, kSize), IsOk());
  ASSERT_THAT(end.Record(stream.handle()), IsOk());
  ASSERT_THAT(end.Synchronize(), IsOk());
  EXPECT_THAT(end.IsComplete(), IsOkAndHolds(true));
  ASSERT_OK_AND_ASSIGN(const int64_t elapsed_ns, Event::ElapsedNs(start, end));
  // 256 MiB at no more than 20 TB/s and no less than 10 GB/s.
  EXPECT_GT(elapsed_ns, 13'000);
  EXPECT_LT(elapsed_ns, 30'000'000);
}

TEST_F(RuntimeGpu, AnErrorDoesNotStick) {
  EXPECT_THAT(DeviceBuffer::Allocate(size_t{1} << 50),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("1125899906842624 bytes")));
  EXPECT_THAT(GetRuntime().SetDevice(1 << 20),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("(101)")));
  EXPECT_THAT(GetRuntime().SynchronizeDevice(), IsOk());
}

TEST_F(RuntimeGpu, PinsMemoryInPlace) {
  std::vector<char> memory(1 << 20);
  ASSERT_OK_AND_ASSIGN(
      const HostRegistration registration,
      HostRegistration::Register(memory.data(), memory.size()));
  EXPECT_THAT(HostRegistration::Register(memory.data(), memory.size()),
              Not(IsOk()));
}

}  // namespace
}  // namespace firstframe::cuda
