#include "lib/metrics/vae_perf.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::ReadFile;
using ::firstframe::testing::TempDir;
using ::testing::HasSubstr;

TEST(VaePerf, WritesARecordADecodeWithFlopsAndMfu) {
  const TempDir dir;
  std::ostringstream log;
  PerfSettings settings{.level = 1, .json_path = dir.File("perf.jsonl")};
  ASSERT_OK_AND_ASSIGN(
      const ForwardCost cost,
      WanVaeDecodeCost(ToCostConfig(*WanVaePreset("wan21")), 1, 3, 60, 104));
  {
    const auto perf =
        VaePerf::Create(settings, &log,
                        {.flops = static_cast<double>(cost.TotalFlops()),
                         .device_name = "NVIDIA H200",
                         .math = MathType::kTf32});
    for (int decode = 0; decode < 3; ++decode) {
      VaePerf::Request request(perf.get());
    }
    perf->ReportSummary();
  }
  const std::string records = ReadFile(dir.File("perf.jsonl"));
  EXPECT_EQ(std::count(records.begin(), records.end(), '\n'), 3);
  EXPECT_THAT(records, HasSubstr("\"stages\":{\"vae_dec\":{\"count\":1"));
  EXPECT_THAT(records, HasSubstr("\"dit\":null,\"vae\":{\"flops_per_call\":"));
  EXPECT_THAT(records, HasSubstr("\"peak_tflops\":494.5"));
  EXPECT_THAT(log.str(), HasSubstr("req#2"));
  EXPECT_THAT(log.str(), HasSubstr("=== 3 reqs"));
  EXPECT_EQ(internal::current_request, nullptr);
}

TEST(VaePerf, IsNothingWhenNull) {
  VaePerf::Request request(nullptr);
  EXPECT_EQ(internal::current_request, nullptr);
}

}  // namespace
}  // namespace firstframe
