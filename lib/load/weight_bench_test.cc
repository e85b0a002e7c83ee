#include "lib/load/weight_bench.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "lib/dist/local_collective.h"
#include "lib/load/testing_checkpoint.h"
#include "lib/load/weight_bench_report.h"
#include "lib/testing/status_matchers.h"
#include "simdjson.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::RandomCheckpoint;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

WeightBenchOptions OptionsFor(std::vector<LoadMode> modes) {
  WeightBenchOptions options;
  options.modes = std::move(modes);
  options.warmup = 1;
  options.repeats = 2;
  options.load.transfer.cached_threads = 2;
  return options;
}

std::vector<LoadMode> AllModes() {
  std::vector<LoadMode> modes;
  for (const LoadModeInfo& info : AllLoadModes()) modes.push_back(info.mode);
  return modes;
}

TEST(LoadModes, NamesParseAndMisspellingsAreExplained) {
  ASSERT_OK_AND_ASSIGN(const std::vector<LoadMode> modes,
                       ParseLoadModes("to_cpu, shard_allgather"));
  EXPECT_EQ(modes, (std::vector<LoadMode>{LoadMode::kToCpu,
                                          LoadMode::kShardAllgather}));
  EXPECT_THAT(ParseLoadModes("to_cpu,broadcast_sink"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("did you mean 'broadcast_sync'")));
  for (const LoadModeInfo& info : AllLoadModes()) {
    ASSERT_OK_AND_ASSIGN(const auto parsed, ParseLoadModes(info.name));
    EXPECT_EQ(parsed, std::vector<LoadMode>{info.mode});
  }
}

TEST(WeightBench, HostModesAreTimedAndVerified) {
  const RandomCheckpoint checkpoint(50, 300'000);
  WeightBenchOptions options = OptionsFor(AllModes());
  options.verify = true;
  options.roofline = true;
  options.cache = CacheMode::kWarm;
  const auto group = MakeSoleCollective(MemoryKind::kHost);
  ASSERT_OK_AND_ASSIGN(const WeightBenchResult result,
                       RunWeightBench(checkpoint.source, *group, options));
  EXPECT_EQ(result.tensors, checkpoint.source.tensors.size());
  for (size_t i = 0; i < result.modes.size(); ++i) {
    const ModeResult& mode = result.modes[i];
    const LoadModeInfo& info = GetLoadModeInfo(mode.mode);
    if (options.modes[i] == LoadMode::kAuto) {
      EXPECT_EQ(mode.mode, LoadMode::kHost);
      EXPECT_THAT(mode.chosen_because, HasSubstr("by host_copy; measured in"));
    } else {
      EXPECT_EQ(mode.chosen_because, "");
    }
    if (info.needs_device || mode.mode == LoadMode::kShardAllgather) {
      EXPECT_FALSE(mode.skipped.empty()) << std::string(info.name);
      continue;
    }
    ASSERT_EQ(mode.samples.size(), 2u) << std::string(info.name);
    for (const LoadSample& sample : mode.samples) {
      EXPECT_GT(sample.seconds, 0);
      EXPECT_EQ(sample.resident_before, 1.0);
      EXPECT_EQ(sample.verified.has_value(), mode.mode != LoadMode::kToCpu);
      EXPECT_TRUE(sample.verified.value_or(true));
    }
    EXPECT_TRUE(mode.limit.gb_per_s.has_value()) << std::string(info.name);
  }
}

// Flips one byte of a file and gives it its old time back, so that nothing but
// the bytes tells.
void FlipByte(const std::string& path, long at) {
  struct stat info;
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  std::FILE* file = std::fopen(path.c_str(), "r+b");
  ASSERT_NE(file, nullptr);
  std::fseek(file, at, SEEK_SET);
  const int byte = std::fgetc(file);
  std::fseek(file, at, SEEK_SET);
  std::fputc(byte ^ 1, file);
  std::fclose(file);
  const timespec times[] = {info.st_atim, info.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

TEST(WeightBench, VerifyFindsAWrongByte) {
  const RandomCheckpoint checkpoint(5, 300'000);
  WeightBenchOptions options = OptionsFor({LoadMode::kHost});
  options.verify = true;
  options.warmup = 0;
  // What the files held is hashed with the first sample; the second loads
  // something else.
  options.before_sample = [&](LoadMode, int repeat) {
    if (repeat == 1) FlipByte(checkpoint.source.paths[0], 5000);
    return absl::OkStatus();
  };
  const auto group = MakeSoleCollective(MemoryKind::kHost);
  ASSERT_OK_AND_ASSIGN(const WeightBenchResult result,
                       RunWeightBench(checkpoint.source, *group, options));
  const std::vector<LoadSample>& samples = result.modes[0].samples;
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].verified, true);
  EXPECT_EQ(samples[1].verified, false);
  EXPECT_EQ(samples[1].wrong_tensors,
            std::vector<std::string>{checkpoint.source.tensors[0].name});
}

TEST(WeightBench, ManyRanksAgreeOnTheSlowest) {
  const RandomCheckpoint checkpoint(50, 300'000);
  auto group = MakeLocalGroup(3, absl::Seconds(60));
  std::vector<absl::StatusOr<WeightBenchResult>> results(
      3, absl::UnknownError("not run"));
  std::vector<std::thread> threads;
  for (int r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      WeightBenchOptions options = OptionsFor(AllModes());
      options.verify = true;
      results[r] = RunWeightBench(checkpoint.source, *group[r], options);
      group[r].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) {
    ASSERT_THAT(result, IsOk());
    for (size_t m = 0; m < result->modes.size(); ++m) {
      for (size_t i = 0; i < result->modes[m].samples.size(); ++i) {
        const LoadSample& sample = result->modes[m].samples[i];
        EXPECT_EQ(sample.rank_seconds.size(), 3u);
        EXPECT_EQ(sample.seconds, results[0]->modes[m].samples[i].seconds);
        EXPECT_EQ(sample.seconds, sample.rank_seconds[sample.slowest_rank]);
        EXPECT_TRUE(sample.verified.value_or(true));
      }
    }
  }
}

TEST(WeightBench, ARankThatFailsEndsAll) {
  const RandomCheckpoint checkpoint(5, 300'000);
  auto group = MakeLocalGroup(3, absl::Seconds(60));
  std::vector<absl::Status> results(3);
  std::vector<std::thread> threads;
  for (int r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      WeightBenchOptions options = OptionsFor({LoadMode::kShardAllgather});
      if (r == 1) {
        options.before_sample = [](LoadMode, int repeat) {
          return repeat == 0 ? absl::DataLossError("bad disk")
                             : absl::OkStatus();
        };
      }
      results[r] =
          RunWeightBench(checkpoint.source, *group[r], options).status();
      if (!results[r].ok()) group[r]->Fail(results[r]);
      group[r].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(results[1],
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("bad disk")));
  for (const int r : {0, 2}) {
    EXPECT_THAT(results[r],
                StatusIs(absl::StatusCode::kAborted, HasSubstr("rank 1")));
  }
}

TEST(WeightBenchReport, EveryFormSaysTheSame) {
  const RandomCheckpoint checkpoint(5, 300'000);
  WeightBenchOptions options =
      OptionsFor({LoadMode::kToCpu, LoadMode::kIndependentPerTensor,
                  LoadMode::kIndependent, LoadMode::kToGpu});
  options.verify = true;
  options.roofline = true;
  const auto group = MakeSoleCollective(MemoryKind::kHost);
  ASSERT_OK_AND_ASSIGN(WeightBenchResult result,
                       RunWeightBench(checkpoint.source, *group, options));
  result.modes[2].samples[0].degraded = {"a \"quoted\" note"};
  const WeightBenchContext context =
      ReadWeightBenchContext(checkpoint.source.paths[0], std::nullopt);
  std::ostringstream json;
  WriteWeightBenchJson(result, context, json);
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  ASSERT_EQ(parser.parse(json.str()).get(root), simdjson::SUCCESS);
  EXPECT_EQ(std::string_view(root["schema"]["name"]),
            "firstframe.weight_bench");
  EXPECT_EQ(root["samples"].get_array().size(), 6u);
  EXPECT_EQ(root["summary"]["modes"].get_array().size(), 4u);
  const auto third = root["summary"]["modes"].at(2);
  EXPECT_EQ(std::string_view(third["mode"]), "independent");
  EXPECT_EQ(std::string_view(third["speedup_over"]), "independent_per_tensor");
  EXPECT_TRUE(bool(third["verified"]));
  EXPECT_EQ(std::string_view(root["samples"].at(4)["degraded"].at(0)),
            "a \"quoted\" note");
  std::ostringstream text;
  WriteWeightBenchText(result, context, text);
  EXPECT_TRUE(absl::StrContains(text.str(), "skipped: needs a device"));
  EXPECT_TRUE(absl::StrContains(text.str(), "degraded, independent: a \""));
  std::ostringstream table;
  WriteWeightBenchGithub(result, context, table);
  EXPECT_TRUE(absl::StrContains(table.str(), "| Ranks | Independent read |"));
}

TEST(Roofline, TheLeastLimitBinds) {
  Roofline roofline;
  roofline.pinned_h2d.gb_per_s = 55;
  roofline.cached_read.gb_per_s = 70;
  roofline.host_copy.gb_per_s = 40;
  roofline.direct_read.gb_per_s = 3;
  roofline.broadcast.gb_per_s = 360;
  roofline.all_gather.gb_per_s = 280;
  roofline.total_pinned_h2d = 107;
  roofline.total_cached_read = 90;
  const auto limit = [&](LoadMode mode, int ranks, bool device, double cached) {
    return LimitFor(mode, roofline, ranks, device, cached);
  };
  EXPECT_EQ(limit(LoadMode::kIndependent, 1, true, 1).name, "pinned_h2d");
  EXPECT_EQ(limit(LoadMode::kIndependent, 1, true, 0).name, "direct_read");
  EXPECT_EQ(limit(LoadMode::kHost, 1, true, 1).gb_per_s, 40);
  EXPECT_EQ(limit(LoadMode::kShardAllgather, 2, true, 1).name,
            "cached_read, all ranks");
  roofline.broadcast.gb_per_s = 20;
  EXPECT_EQ(limit(LoadMode::kBroadcastBucketed, 2, true, 1).name, "broadcast");
  EXPECT_EQ(limit(LoadMode::kRegistered, 1, true, 1).gb_per_s, 55);
  EXPECT_EQ(LimitFor(LoadMode::kIndependent, Roofline(), 1, true, 1).gb_per_s,
            std::nullopt);
}

}  // namespace
}  // namespace firstframe
