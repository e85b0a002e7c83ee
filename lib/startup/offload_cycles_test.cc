#include "lib/startup/offload_cycles.h"

#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/fake_cuda.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::FakeCuda;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

FloatTensor Output(float value) { return {.shape = {1}, .values = {value}}; }

TEST(OffloadCycles, MovesThereAndBackAndComparesEachDecode) {
  FakeCuda cuda;
  std::vector<OffloadTensor> tensors(1);
  auto storage = std::make_shared<std::vector<std::byte>>(1000);
  tensors[0].name = "decoder";
  tensors[0].size_bytes = 1000;
  tensors[0].data = storage->data();
  tensors[0].device = 0;
  tensors[0].storage = storage;
  OffloadModule module(std::move(tensors));
  int decodes = 0;
  ASSERT_OK_AND_ASSIGN(const OffloadFacts facts,
                       RunOffloadCycles(
                           {.module = &module, .runtime = &cuda}, 3,
                           [&]() -> absl::StatusOr<FloatTensor> {
                             EXPECT_EQ(module.tensors()[0].device, 0);
                             ++decodes;
                             return Output(1);
                           },
                           Output(1)));
  EXPECT_EQ(decodes, 3);
  EXPECT_EQ(facts.cycles.size(), 3u);
  EXPECT_TRUE(facts.is_identical);
  EXPECT_EQ(facts.h2d_bytes, 3000u);
  EXPECT_EQ(facts.d2h_bytes, 1000u) << "the one host copy";
  EXPECT_EQ(facts.d2h_avoided_bytes, 2000u);
  EXPECT_EQ(module.tensors()[0].device, 0);
}

TEST(OffloadCycles, SaysWhenADecodeDiffers) {
  float value = 1;
  ASSERT_OK_AND_ASSIGN(
      const OffloadFacts facts,
      RunOffloadCycles(
          {}, 2,
          [&]() -> absl::StatusOr<FloatTensor> { return Output(value++); },
          Output(1)));
  EXPECT_FALSE(facts.is_identical);
}

TEST(OffloadCycles, OnTheCpuNothingMoves) {
  ASSERT_OK_AND_ASSIGN(
      const OffloadFacts facts,
      RunOffloadCycles(
          {}, 1, []() -> absl::StatusOr<FloatTensor> { return Output(1); },
          Output(1)));
  EXPECT_EQ(facts.h2d_bytes + facts.d2h_bytes, 0u);
  EXPECT_TRUE(facts.is_identical);
}

TEST(OffloadCycles, AnErrorEndsThem) {
  EXPECT_THAT(RunOffloadCycles(
                  {}, 1,
                  []() -> absl::StatusOr<FloatTensor> {
                    return absl::CancelledError("stop");
                  },
                  Output(1)),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("stop")));
}

}  // namespace
}  // namespace firstframe
