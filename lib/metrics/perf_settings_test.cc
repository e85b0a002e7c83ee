#include "lib/metrics/perf_settings.h"

#include <map>
#include <string>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

PerfSettings Read(const std::map<std::string, std::string>& environment) {
  return ReadPerfSettings([&](const char* name) -> const char* {
    const auto it = environment.find(name);
    return it == environment.end() ? nullptr : it->second.c_str();
  });
}

TEST(ReadPerfSettings, IsOffUnlessSetToAPositiveNumber) {
  EXPECT_FALSE(Read({}).enabled());
  for (const char* off : {"", "0", "-1", "yes", "1.5", " "}) {
    EXPECT_FALSE(Read({{"VIDEOX_PERF", off}}).enabled()) << off;
  }
  EXPECT_EQ(Read({{"VIDEOX_PERF", " 2 "}}).level, 2);
}

TEST(ReadPerfSettings, ReadsEveryVariable) {
  const PerfSettings settings = Read({{"VIDEOX_PERF", "1"},
                                      {"VIDEOX_PERF_JSON", "/tmp/p.jsonl"},
                                      {"VIDEOX_PERF_WARMUP", "3"},
                                      {"VIDEOX_PERF_RANKS", " ALL "},
                                      {"VIDEOX_PERF_PEAK_TFLOPS", "989.4"},
                                      {"VIDEOX_PERF_DIT_PARAMS", "14000000000"},
                                      {"VIDEOX_PERF_FLOPS_ATTN", "0"},
                                      {"VIDEOX_PERF_EVERY", "0"},
                                      {"VIDEOX_PERF_TOTAL_STEPS", "1000"},
                                      {"VIDEOX_PERF_FLOPS_COEF", "2.5"},
                                      {"RANK", "3"},
                                      {"WORLD_SIZE", "8"}});
  EXPECT_EQ(settings.RankJsonPath(), "/tmp/p.jsonl.rank3");
  EXPECT_EQ(settings.warmup, 3);
  EXPECT_TRUE(settings.log_all_ranks);
  EXPECT_TRUE(settings.ShouldLog());
  EXPECT_EQ(settings.peak_tflops, 989.4);
  EXPECT_EQ(settings.dit_params, 14'000'000'000);
  EXPECT_FALSE(settings.price_attention);
  EXPECT_EQ(settings.every, 1) << "at least one step a window";
  EXPECT_EQ(settings.total_steps, 1000);
  EXPECT_EQ(settings.flops_coefficient, 2.5);
  EXPECT_EQ(settings.Tag(), "[Perf][rank3]");
}

TEST(ReadPerfSettings, TakesNumbersAsPythonDoes) {
  const PerfSettings settings =
      Read({{"VIDEOX_PERF", "+1"},
            {"VIDEOX_PERF_DIT_PARAMS", "14_288_491_584"},
            {"VIDEOX_PERF_PEAK_TFLOPS", " 9_89.5e0\n"},
            {"VIDEOX_PERF_WARMUP", "_3"},
            {"VIDEOX_PERF_EVERY", "1__0"}});
  EXPECT_EQ(settings.level, 1);
  EXPECT_EQ(settings.dit_params, 14'288'491'584);
  EXPECT_EQ(settings.peak_tflops, 989.5);
  EXPECT_EQ(settings.warmup, 0);
  EXPECT_EQ(settings.every, 50);
}

TEST(ReadPerfSettings, TakesDefaultsForWhatDoesNotParse) {
  const PerfSettings settings = Read({{"VIDEOX_PERF", "1"},
                                      {"VIDEOX_PERF_EVERY", "many"},
                                      {"VIDEOX_PERF_PEAK_TFLOPS", "fast"},
                                      {"VIDEOX_PERF_FLOPS_ATTN", "no"},
                                      {"VIDEOX_PERF_TOTAL_STEPS", "0"},
                                      {"VIDEOX_PERF_RANKS", "0"},
                                      {"RANK", "1"}});
  EXPECT_EQ(settings.every, 50);
  EXPECT_EQ(settings.peak_tflops, std::nullopt);
  EXPECT_TRUE(settings.price_attention);
  EXPECT_EQ(settings.total_steps, std::nullopt);
  EXPECT_FALSE(settings.ShouldLog()) << "rank 1 is not rank 0";
  EXPECT_EQ(settings.RankJsonPath(), std::nullopt);
}

TEST(DataParallelDegree, DividesTheWorldByThoseWhoShareASample) {
  EXPECT_EQ(DataParallelDegree(8, 2), 4);
  EXPECT_EQ(DataParallelDegree(8, 0), 8);
  EXPECT_EQ(DataParallelDegree(2, 8), 1);
}

}  // namespace
}  // namespace firstframe
