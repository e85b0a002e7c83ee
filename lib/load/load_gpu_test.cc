// Loads and hashes on a real device; skipped where there is none.

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/runtime.h"
#include "lib/cuda/stream.h"
#include "lib/load/loader.h"
#include "lib/load/registered_load.h"
#include "lib/load/tensor_hash.h"
#include "lib/load/testing_checkpoint.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::RandomCheckpoint;

class LoadGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<int> devices = runtime_.DeviceCount();
    if (!devices.ok() || *devices == 0) GTEST_SKIP() << "no GPU";
    ASSERT_THAT(runtime_.SetDevice(0), IsOk());
  }

  // Expects that the arena holds what the files do, tensor by tensor.
  void ExpectWhole(const LoadPlan& plan, const std::byte* arena) {
    ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> files, HashFiles(plan, 4));
    ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> device,
                         HashDeviceArena(plan, arena, runtime_));
    for (size_t i = 0; i < files.size(); ++i) {
      ASSERT_EQ(device[i], files[i]) << plan.tensors[i].source.name;
    }
  }

  cuda::Runtime& runtime_ = cuda::GetRuntime();
  const RandomCheckpoint checkpoint_{2000, 40 << 20};
};

TEST_F(LoadGpuTest, EveryPathAndRingFillsTheArena) {
  for (const PathPolicy policy : {PathPolicy::kCached, PathPolicy::kDirect}) {
    for (const int streams : {1, 2}) {
      for (const uint64_t slot_bytes :
           {uint64_t{256} << 10, uint64_t{8} << 20}) {
        LoadOptions options;
        options.runtime = &runtime_;
        options.policy = policy;
        options.transfer.copy_streams = streams;
        options.transfer.cached_read_bytes = 128 << 10;
        options.transfer.cached_slot_bytes = slot_bytes;
        options.transfer.direct_slot_bytes = 1 << 20;
        ASSERT_OK_AND_ASSIGN(
            CheckpointLoader loader,
            CheckpointLoader::Create(checkpoint_.source, options));
        const uint64_t size = loader.plan().arena_bytes;
        ASSERT_OK_AND_ASSIGN(const cuda::DeviceBuffer arena,
                             cuda::DeviceBuffer::Allocate(size));
        ASSERT_OK_AND_ASSIGN(const cuda::Stream stream, cuda::Stream::Create());
        ASSERT_THAT(stream.FillAsync(arena.data(), 0xA5, size), IsOk());
        ASSERT_THAT(stream.Synchronize(), IsOk());
        ASSERT_OK_AND_ASSIGN(const LoadReport report,
                             loader.LoadAll(arena.data()));
        EXPECT_TRUE(report.ring_is_pinned);
        ExpectWhole(loader.plan(), arena.data());
      }
    }
  }
}

TEST_F(LoadGpuTest, RegisteredMappingFillsTheArena) {
  ASSERT_OK_AND_ASSIGN(const LoadPlan plan, MakeLoadPlan(checkpoint_.source));
  ASSERT_OK_AND_ASSIGN(const OpenedSources sources,
                       OpenSources(plan, PathPolicy::kCached));
  ASSERT_OK_AND_ASSIGN(const cuda::DeviceBuffer arena,
                       cuda::DeviceBuffer::Allocate(plan.arena_bytes));
  ASSERT_OK_AND_ASSIGN(const cuda::Stream stream, cuda::Stream::Create());
  const auto report =
      LoadRegistered(plan, sources, arena.data(), stream, 1 << 30);
  if (absl::IsUnavailable(report.status())) GTEST_SKIP() << report.status();
  ASSERT_THAT(report, IsOk());
  ExpectWhole(plan, arena.data());
}

}  // namespace
}  // namespace firstframe
