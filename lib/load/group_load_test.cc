#include "lib/load/group_load.h"

#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "lib/base/status_macros.h"
#include "lib/dist/local_collective.h"
#include "lib/load/baseline_load.h"
#include "lib/load/testing_checkpoint.h"
#include "lib/testing/fake_cuda.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::FakeCuda;
using ::firstframe::testing::IsOk;
using ::firstframe::testing::RandomCheckpoint;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

using Load = std::function<absl::Status(CheckpointLoader&, std::byte* arena,
                                        Collective&, const GroupLoadOptions&)>;

absl::Status Baseline(CheckpointLoader& loader, std::byte* arena,
                      Collective& group, const GroupLoadOptions& options,
                      BaselineBroadcast broadcast) {
  return LoadPerTensor(loader.plan(), loader.sources(), arena, options.stream,
                       group, broadcast)
      .status();
}

struct Case {
  const char* name;
  Load load;
};

std::vector<Case> Cases() {
  return {
      {"Independent",
       [](auto& l, auto* a, auto& g, auto& o) {
         return LoadIndependent(l, a, g, o).status();
       }},
      {"Broadcast",
       [](auto& l, auto* a, auto& g, auto& o) {
         return LoadAndBroadcast(l, a, g, o).status();
       }},
      {"Gather", [](auto& l, auto* a, auto& g,
                    auto& o) { return LoadAndGather(l, a, g, o).status(); }},
      {"PerTensor",
       [](auto& l, auto* a, auto& g, auto& o) {
         return Baseline(l, a, g, o, BaselineBroadcast::kNone);
       }},
      {"PerTensorSync",
       [](auto& l, auto* a, auto& g, auto& o) {
         return Baseline(l, a, g, o, BaselineBroadcast::kSync);
       }},
      {"PerTensorAsync",
       [](auto& l, auto* a, auto& g, auto& o) {
         return Baseline(l, a, g, o, BaselineBroadcast::kAsync);
       }},
  };
}

// One rank: loads into its own arena and compares it with the files.
absl::Status RunRank(const RandomCheckpoint& checkpoint, Collective& group,
                     cuda::Runtime* runtime, const Load& load) {
  LoadOptions options;
  options.runtime = runtime;
  options.transfer.cached_threads = 2;
  options.transfer.cached_read_bytes = 64 << 10;
  options.transfer.cached_slot_bytes = 256 << 10;
  FF_ASSIGN_OR_RETURN(CheckpointLoader loader,
                      CheckpointLoader::Create(checkpoint.source, options));
  const uint64_t size = GroupArenaBytes(loader.plan(), group.size());
  std::vector<cuda::Stream> stream;
  cuda::DeviceBuffer device;
  HostArena host;
  std::byte* arena;
  GroupLoadOptions group_options;
  group_options.bucket_bytes = 1 << 20;
  if (runtime != nullptr) {
    FF_ASSIGN_OR_RETURN(device, cuda::DeviceBuffer::Allocate(size, *runtime));
    arena = device.data();
    FF_ASSIGN_OR_RETURN(cuda::Stream own, cuda::Stream::Create(0, *runtime));
    stream.push_back(std::move(own));
    group_options.stream = &stream[0];
  } else {
    FF_ASSIGN_OR_RETURN(host, HostArena::Allocate(size));
    arena = host.data();
  }
  FF_RETURN_IF_ERROR(load(loader, arena, group, group_options));
  const std::string wrong = checkpoint.FirstDifference(loader.plan(), arena);
  if (!wrong.empty()) return absl::InternalError("wrong bytes in " + wrong);
  return absl::OkStatus();
}

std::vector<absl::Status> RunRanks(
    int ranks, const std::function<absl::Status(Collective&)>& work) {
  auto group = MakeLocalGroup(ranks, absl::Seconds(60));
  std::vector<absl::Status> results(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      results[r] = work(*group[r]);
      group[r].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

TEST(GroupLoad, EveryModeFillsEveryRank) {
  const RandomCheckpoint checkpoint(300);
  for (const Case& c : Cases()) {
    for (const int ranks : {1, 2, 3}) {
      for (const bool on_device : {false, true}) {
        FakeCuda fake;
        const auto results = RunRanks(ranks, [&](Collective& group) {
          return RunRank(checkpoint, group, on_device ? &fake : nullptr,
                         c.load);
        });
        for (int r = 0; r < ranks; ++r) {
          EXPECT_THAT(results[r], IsOk())
              << c.name << ", rank " << r << " of " << ranks
              << (on_device ? ", device" : ", host");
        }
      }
    }
  }
}

TEST(GroupLoad, OneRanksErrorIsEveryones) {
  const RandomCheckpoint good(20);
  RandomCheckpoint cut(20);
  for (const Case& c : Cases()) {
    const absl::Time start = absl::Now();
    // The file shrinks after the plan was made: the error comes mid-load, on
    // the rank that reads in every mode.
    const auto results = RunRanks(3, [&](Collective& group) -> absl::Status {
      if (group.rank() != 0) return RunRank(good, group, nullptr, c.load);
      return RunRank(cut, group, nullptr,
                     [&](CheckpointLoader& loader, std::byte* arena,
                         Collective& g, const GroupLoadOptions& options) {
                       EXPECT_EQ(::truncate(cut.source.paths[1].c_str(), 5000),
                                 0);
                       return c.load(loader, arena, g, options);
                     });
    });
    cut.dir.Write("shard-1", cut.texts[1]);
    EXPECT_FALSE(results[0].ok()) << c.name;
    for (const int r : {1, 2}) {
      EXPECT_THAT(results[r], StatusIs(absl::StatusCode::kAborted,
                                       HasSubstr("rank 0 failed")))
          << c.name;
    }
    EXPECT_LT(absl::Now() - start, absl::Seconds(30)) << c.name;
  }
}

TEST(BaselineLoad, TouchesFilesThatAreWhole) {
  RandomCheckpoint checkpoint(20);
  ASSERT_OK_AND_ASSIGN(const LoadPlan plan, MakeLoadPlan(checkpoint.source));
  ASSERT_OK_AND_ASSIGN(const OpenedSources sources,
                       OpenSources(plan, PathPolicy::kCached));
  ASSERT_THAT(TouchPerTensor(plan, sources), IsOk());
  ASSERT_EQ(::truncate(checkpoint.source.paths[0].c_str(), 5000), 0);
  EXPECT_THAT(TouchPerTensor(plan, sources),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("shard-0")));
}

}  // namespace
}  // namespace firstframe
