#include "lib/offload/offload_bench.h"

#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/offload/offload_report.h"
#include "lib/offload/synthetic_module.h"
#include "lib/safetensors/writer.h"
#include "lib/testing/fake_cuda.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::FakeCuda;
using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::HasSubstr;

constexpr uint64_t kBytes = 3 << 20;

OffloadBenchOptions SmallOptions() {
  OffloadBenchOptions options;
  options.limit_block_bytes = 1 << 20;
  return options;
}

TEST(SyntheticModule, HasExactlyTheBytesAsked) {
  for (const uint64_t size : {uint64_t{2}, uint64_t{1000}, kBytes + 2}) {
    ASSERT_OK_AND_ASSIGN(const auto module, MakeSyntheticModule(size, 1 << 20));
    EXPECT_EQ(module->size_bytes(), size);
  }
}

TEST(OffloadBench, EveryStrategyIsVerifiedOnTheFake) {
  FakeCuda cuda;
  const TempDir dir;
  const std::string path = dir.File("m.safetensors");
  const std::string data(3000, 'x');
  const auto bytes = absl::MakeConstSpan(
      reinterpret_cast<const std::byte*>(data.data()), data.size());
  ASSERT_THAT(
      WriteSafetensors(path, {{{"b.0.w", {DType::kU8, {3000}, bytes}},
                               {"b.1.w", {DType::kU8, {3000}, bytes}},
                               {"b.2.w", {DType::kU8, {3000}, bytes}}}}),
      IsOk());
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(path));
  OffloadBenchOptions options = SmallOptions();
  options.strategies = {OffloadStrategy::kFrozen, OffloadStrategy::kRoundtrip,
                        OffloadStrategy::kMapped, OffloadStrategy::kLayerwise};
  options.cycles = 3;
  ASSERT_OK_AND_ASSIGN(
      const OffloadBenchResult result,
      RunOffloadBench({.checkpoint = &checkpoint}, options, &cuda));
  ASSERT_EQ(result.strategies.size(), 4u);
  for (const StrategyResult& strategy : result.strategies) {
    SCOPED_TRACE(std::string(OffloadStrategyName(strategy.strategy)));
    EXPECT_EQ(strategy.skipped, "");
    ASSERT_EQ(strategy.samples.size(), 3u);
    EXPECT_EQ(strategy.verified, true);
    EXPECT_EQ(strategy.samples[2].h2d_bytes, 9000u);
    const bool is_baseline = strategy.strategy == OffloadStrategy::kRoundtrip;
    EXPECT_EQ(strategy.samples[2].d2h_bytes, is_baseline ? 9000u : 0u);
    EXPECT_EQ(strategy.samples[2].d2h_avoided_bytes, is_baseline ? 0u : 9000u);
  }
  EXPECT_GT(result.strategies[0].pinned_bytes, 0u);
  EXPECT_GT(result.strategies[2].mapped_bytes, 0u);
  EXPECT_EQ(result.pinned_h2d_gb_per_s.size(), 2u);
  EXPECT_GT(result.limit_gb_per_s(), 0);
  EXPECT_EQ(cuda.live_bytes(), 0);
  EXPECT_EQ(cuda.live_handles(), 0);

  OffloadContext context;
  context.source = path;
  std::ostringstream text, json;
  WriteOffloadText(result, context, text);
  WriteOffloadJson(result, options, context, json);
  EXPECT_THAT(text.str(), HasSubstr("verified: yes"));
  EXPECT_THAT(text.str(), HasSubstr("times the roundtrip's speed"));
  EXPECT_THAT(json.str(), HasSubstr("\"speed_up_over_roundtrip\""));
}

TEST(OffloadBench, WhatASourceCannotDoIsSkippedWithTheReason) {
  FakeCuda cuda;
  OffloadBenchOptions options = SmallOptions();
  options.strategies = {OffloadStrategy::kMapped};
  options.cycles = 1;
  ASSERT_OK_AND_ASSIGN(
      const OffloadBenchResult result,
      RunOffloadBench({.synthetic_bytes = 1000}, options, &cuda));
  EXPECT_THAT(result.strategies[0].skipped, HasSubstr("checkpoint in files"));
  std::ostringstream text;
  WriteOffloadText(result, OffloadContext(), text);
  EXPECT_THAT(text.str(), HasSubstr("mapped: skipped: it needs"));
}

TEST(OffloadBench, WithoutADeviceItIsTheIdentity) {
  OffloadBenchOptions options;
  options.cycles = 2;
  ASSERT_OK_AND_ASSIGN(
      const OffloadBenchResult result,
      RunOffloadBench({.synthetic_bytes = 1000}, options, nullptr));
  EXPECT_TRUE(result.is_identity);
  for (const StrategyResult& strategy : result.strategies) {
    EXPECT_EQ(strategy.samples[1].h2d_bytes, 0u);
    EXPECT_EQ(strategy.verified, true);
  }
}

TEST(OffloadBench, CanBeCancelled) {
  FakeCuda cuda;
  OffloadBenchOptions options = SmallOptions();
  options.is_cancelled = [] { return true; };
  EXPECT_THAT(RunOffloadBench({.synthetic_bytes = 1000}, options, &cuda),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
  EXPECT_EQ(cuda.live_bytes(), 0);
}

TEST(OffloadBench, StrategyNames) {
  EXPECT_EQ(ParseOffloadStrategy("mapped"), OffloadStrategy::kMapped);
  EXPECT_EQ(ParseOffloadStrategy("frosen"), std::nullopt);
}

}  // namespace
}  // namespace firstframe
