#include "lib/load/loader.h"

#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/load/testing_checkpoint.h"
#include "lib/testing/fake_cuda.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::FakeCuda;
using ::firstframe::testing::IsOk;
using ::firstframe::testing::RandomCheckpoint;
using ::firstframe::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class LoaderTest : public ::testing::Test {
 protected:
  void ExpectRightBytes(const LoadedCheckpoint& loaded) {
    ASSERT_EQ(loaded.tensors.size(), source_.tensors.size());
    for (size_t i = 0; i < loaded.tensors.size(); ++i) {
      const LoadedTensor& tensor = loaded.tensors[i];
      const SourceTensor& source = source_.tensors[i];
      ASSERT_EQ(tensor.name, source.name);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(tensor.data) % 256, 0u);
      ASSERT_EQ(tensor.size_bytes, source.size_bytes);
      ASSERT_EQ(std::memcmp(tensor.data,
                            texts_[source.file].data() + source.file_offset,
                            source.size_bytes),
                0)
          << tensor.name;
    }
  }

  RandomCheckpoint checkpoint_{3000};
  const LoadSource& source_ = checkpoint_.source;
  const std::vector<std::string>& texts_ = checkpoint_.texts;
};

TEST_F(LoaderTest, IntoHostMemory) {
  std::vector<std::string> phases;
  LoadOptions options;
  options.on_phase = [&](const LoadPhase& phase) {
    EXPECT_GE(phase.end_ns, phase.start_ns);
    phases.emplace_back(phase.name);
  };
  uint64_t last_progress = 0;
  options.on_progress = [&](uint64_t done, uint64_t) { last_progress = done; };
  ASSERT_OK_AND_ASSIGN(const LoadedCheckpoint loaded,
                       LoadCheckpoint(source_, options));
  ExpectRightBytes(loaded);
  EXPECT_EQ(phases, (std::vector<std::string>{"plan", "allocate", "transfer"}));
  EXPECT_EQ(last_progress, loaded.report.tensor_bytes);
  EXPECT_EQ(loaded.report.ring_bytes, 0u) << "cached reads need no ring";
}

TEST_F(LoaderTest, IntoDeviceMemoryThroughASmallRing) {
  FakeCuda fake;
  LoadOptions options;
  options.runtime = &fake;
  options.transfer.cached_read_bytes = 16 << 10;
  options.transfer.cached_slot_bytes = 64 << 10;
  options.transfer.cached_slots = 3;
  options.transfer.cached_threads = 5;
  ASSERT_OK_AND_ASSIGN(const LoadedCheckpoint loaded,
                       LoadCheckpoint(source_, options));
  ExpectRightBytes(loaded);
  EXPECT_TRUE(loaded.report.ring_is_pinned);
  EXPECT_EQ(loaded.report.ring_bytes, 3u * (64 << 10));
}

TEST_F(LoaderTest, NearADevice) {
  FakeCuda fake;
  LoadOptions options;
  options.runtime = &fake;
  // As on a machine with several memory nodes; CPUs that are not here are not
  // waited for.
  options.place = {.node = 0, .cpus = {0, 4000}};
  ASSERT_OK_AND_ASSIGN(const CheckpointLoader loader,
                       CheckpointLoader::Create(source_, options));
  EXPECT_EQ(loader.options().transfer.cpus, options.place.cpus)
      << "the readers run where the ring lies";
  ASSERT_OK_AND_ASSIGN(const LoadedCheckpoint loaded,
                       LoadCheckpoint(source_, options));
  ExpectRightBytes(loaded);
  EXPECT_TRUE(loaded.report.ring_is_pinned);
}

TEST_F(LoaderTest, DirectlyIntoEitherMemory) {
  for (const bool allow_io_uring : {true, false}) {
    FakeCuda fake;
    for (cuda::Runtime* runtime : {static_cast<cuda::Runtime*>(nullptr),
                                   static_cast<cuda::Runtime*>(&fake)}) {
      LoadOptions options;
      options.runtime = runtime;
      options.policy = PathPolicy::kDirect;
      options.transfer.direct_slot_bytes = 256 << 10;
      options.transfer.direct_threads = 2;
      options.transfer.allow_io_uring = allow_io_uring;
      ASSERT_OK_AND_ASSIGN(const LoadedCheckpoint loaded,
                           LoadCheckpoint(source_, options));
      ExpectRightBytes(loaded);
      const TransferStats& stats = loaded.report.transfer;
      if (loaded.report.degraded.empty()) {
        EXPECT_EQ(stats.bytes_by_path[1], loaded.report.tensor_bytes);
        EXPECT_EQ(stats.direct_method, allow_io_uring ? "io_uring" : "pread");
      } else {
        EXPECT_EQ(stats.bytes_by_path[0], loaded.report.tensor_bytes);
      }
    }
  }
}

TEST_F(LoaderTest, EvictedFilesAreReadDirectlyAndStayCold) {
  LoadOptions options;
  ASSERT_OK_AND_ASSIGN(CheckpointLoader loader,
                       CheckpointLoader::Create(source_, options));
  for (const OpenedFile& file : loader.sources().files) {
    if (!file.direct) GTEST_SKIP() << file.no_direct_reason;
    ASSERT_THAT(EvictFromPageCache(file.buffered), IsOk());
  }
  if (loader.sources().ProbeAll().fraction().value_or(1) > 0.01) {
    GTEST_SKIP() << "the cache cannot be emptied here";
  }
  ASSERT_OK_AND_ASSIGN(const HostArena arena,
                       HostArena::Allocate(loader.plan().arena_bytes));
  ASSERT_OK_AND_ASSIGN(const LoadReport report, loader.LoadAll(arena.data()));
  EXPECT_EQ(report.transfer.bytes_by_path[1], report.tensor_bytes);
  EXPECT_LT(*report.residency_before.fraction(), 0.01);
  EXPECT_LT(loader.sources().ProbeAll().fraction().value_or(0), 0.01);
}

TEST_F(LoaderTest, RangesCompleteInOrder) {
  FakeCuda fake;
  LoadOptions options;
  options.runtime = &fake;
  options.transfer.copy_streams = 2;
  ASSERT_OK_AND_ASSIGN(CheckpointLoader loader,
                       CheckpointLoader::Create(source_, options));
  std::vector<ArenaRange> ranges;
  const uint64_t step = 1 << 20;
  for (uint64_t at = 0; at < loader.plan().arena_bytes; at += step) {
    ranges.push_back({at, std::min(at + step, loader.plan().arena_bytes)});
  }
  ASSERT_OK_AND_ASSIGN(
      cuda::DeviceBuffer arena,
      cuda::DeviceBuffer::Allocate(loader.plan().arena_bytes, fake));
  std::vector<int> order;
  ASSERT_THAT(loader.Load(arena.data(), ranges,
                          [&](int group, absl::Span<const cuda::Stream> s) {
                            EXPECT_EQ(s.size(), 2u);
                            order.push_back(group);
                            return absl::OkStatus();
                          }),
              IsOk());
  ASSERT_EQ(order.size(), ranges.size());
  for (size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(order[i], static_cast<int>(i));
  }
}

TEST_F(LoaderTest, AHookThatFailsStopsTheLoad) {
  LoadOptions options;
  ASSERT_OK_AND_ASSIGN(CheckpointLoader loader,
                       CheckpointLoader::Create(source_, options));
  ASSERT_OK_AND_ASSIGN(const HostArena arena,
                       HostArena::Allocate(loader.plan().arena_bytes));
  const ArenaRange all[] = {{0, loader.plan().arena_bytes}};
  EXPECT_THAT(loader.Load(arena.data(), all,
                          [](int, absl::Span<const cuda::Stream>) {
                            return absl::AbortedError("rank 3 left");
                          }),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("rank 3")));
}

TEST_F(LoaderTest, CancelledAndLate) {
  LoadOptions options;
  options.is_cancelled = [] { return true; };
  EXPECT_THAT(LoadCheckpoint(source_, options),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
  options.is_cancelled = {};
  options.deadline = absl::InfinitePast();
  EXPECT_THAT(
      LoadCheckpoint(source_, options),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("deadline")));
}

TEST_F(LoaderTest, AFileThatShrankIsAnErrorWhereverItIsNoticed) {
  ASSERT_OK_AND_ASSIGN(CheckpointLoader loader,
                       CheckpointLoader::Create(source_, {}));
  ASSERT_OK_AND_ASSIGN(const HostArena arena,
                       HostArena::Allocate(loader.plan().arena_bytes));
  ASSERT_EQ(::truncate(source_.paths[1].c_str(), 3 << 20), 0);
  EXPECT_THAT(loader.LoadAll(arena.data()),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("shard-1")));
  EXPECT_THAT(LoadCheckpoint(source_, {}),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("shard-1"), HasSubstr("promises"))));
}

TEST_F(LoaderTest, AFileThatChangedIsAnError) {
  ASSERT_OK_AND_ASSIGN(CheckpointLoader loader,
                       CheckpointLoader::Create(source_, {}));
  ASSERT_OK_AND_ASSIGN(const HostArena arena,
                       HostArena::Allocate(loader.plan().arena_bytes));
  checkpoint_.dir.Write("shard-0", texts_[0] + "more");
  EXPECT_THAT(loader.LoadAll(arena.data()),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("changed")));
}

TEST_F(LoaderTest, ARefusedPinIsVisible) {
  FakeCuda fake;
  fake.FailNext("RegisterHost", absl::ResourceExhaustedError("memlock"));
  LoadOptions options;
  options.runtime = &fake;
  ASSERT_OK_AND_ASSIGN(const LoadedCheckpoint loaded,
                       LoadCheckpoint(source_, options));
  ExpectRightBytes(loaded);
  EXPECT_FALSE(loaded.report.ring_is_pinned);
  EXPECT_THAT(loaded.report.degraded,
              Contains(AllOf(HasSubstr("not pinned"), HasSubstr("memlock"))));
}

TEST_F(LoaderTest, DeviceErrorsComeThrough) {
  for (const char* call : {"CopyAsync", "CreateEvent", "CreateStream"}) {
    FakeCuda fake;
    fake.FailNext(call, absl::InternalError("device trouble"));
    LoadOptions options;
    options.runtime = &fake;
    EXPECT_THAT(
        LoadCheckpoint(source_, options),
        StatusIs(absl::StatusCode::kInternal, HasSubstr("device trouble")))
        << call;
  }
}

TEST(Loader, ThreadsFollowTheCpusThatAreOurs) {
  const auto threads = [](bool to_device, int ranks, int usable) {
    return ResolveTransferOptions({}, to_device, ranks, {usable, 32})
        .cached_threads;
  };
  EXPECT_EQ(threads(true, 2, 32), 12);
  EXPECT_EQ(threads(true, 1, 16), 12);
  EXPECT_EQ(threads(false, 1, 16), 16);
  EXPECT_EQ(threads(false, 1, 192), kMaxAutoThreads);
  EXPECT_EQ(threads(true, 2, 1), 1);
  const auto slots = [](int ranks) {
    return ResolveTransferOptions({}, true, ranks, {32, 32}).cached_slots;
  };
  EXPECT_EQ(slots(1), 8);
  EXPECT_EQ(slots(2), 4);
  EXPECT_EQ(slots(8), 4);
  TransferOptions chosen;
  chosen.cached_threads = 5;
  chosen.cached_slots = 3;
  EXPECT_EQ(ResolveTransferOptions(chosen, true, 8, {1, 1}).cached_slots, 3);
  EXPECT_EQ(ResolveTransferOptions(chosen, true, 8, {1, 1}).cached_threads, 5);
}

TEST(Loader, NothingToLoad) {
  ASSERT_OK_AND_ASSIGN(const LoadedCheckpoint loaded,
                       LoadCheckpoint(LoadSource(), LoadOptions()));
  EXPECT_TRUE(loaded.tensors.empty());
  EXPECT_EQ(loaded.report.tensor_bytes, 0u);
}

}  // namespace
}  // namespace firstframe
