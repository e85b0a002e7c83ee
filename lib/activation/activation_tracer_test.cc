#include "lib/activation/activation_tracer.h"

#include <cmath>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/activation/trace_step.h"
#include "lib/stats/compute.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::ReadFile;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TensorView ViewOf(const std::vector<float>& values, Shape shape) {
  return {DType::kF32, std::move(shape),
          absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()),
                              values.size() * sizeof(float))};
}

std::string RecordOf(absl::string_view stats, const std::vector<float>& values,
                     Shape shape) {
  const std::vector<TraceStat> list = ParseTraceStats(stats).stats;
  const TensorStats computed =
      ComputeTensorStats(ViewOf(values, shape), {.request = RequestFor(list)})
          .value();
  return FormatTraceRecord(
      {.module = "a.0", .step = {}, .rank = {}, .run = {}, .call = {}}, list,
      computed, DType::kF32, shape);
}

// Lines that FastVideo's hook wrote for the same tensors.
TEST(TraceRecord, EqualsFastVideos) {
  EXPECT_EQ(
      RecordOf("abs_mean,sum,min,max,mean,std,shape,dtype", {1, 2, 3, 4},
               {2, 2}),
      R"({"module": "a.0", "tensor": "out", "step": null, "abs_mean": 2.5, )"
      R"("sum": 10.0, "min": 1.0, "max": 4.0, "mean": 2.5, )"
      R"("std": 1.29099440574646, "shape": [2, 2], "dtype": "torch.float32"})");
  EXPECT_EQ(RecordOf("shape,std,mean", {0.1f}, {}),
            R"({"module": "a.0", "tensor": "out", "step": null, "shape": [], )"
            R"("std": NaN, "mean": 0.10000000149011612})");
  EXPECT_EQ(RecordOf("abs_mean,sum,max", {INFINITY, -INFINITY}, {2}),
            R"({"module": "a.0", "tensor": "out", "step": null, )"
            R"("abs_mean": Infinity, "sum": NaN, "max": Infinity})");
  EXPECT_EQ(
      RecordOf("abs_mean,sum,min", {}, {0, 3}),
      R"({"module": "a.0", "tensor": "out", "step": null, "abs_mean": NaN, )"
      R"("sum": 0.0, "min": "<error: RuntimeError(\"min(): Expected )"
      R"(reduction dim to be specified for input.numel() == 0. Specify the )"
      R"(reduction dim with the 'dim' argument.\")>"})");
}

TEST(TraceRecord, WritesTheExtraStatistics) {
  const std::string line = RecordOf(
      "numel,rms,nan,inf_pos,inf_neg,zero,amax_idx,h_set,h_pos,exp_hist,samp",
      {0, 3, -4, NAN}, {4});
  EXPECT_THAT(line, HasSubstr(R"("numel": 4, "rms": 2.88)"));
  EXPECT_THAT(line, HasSubstr(R"("nan": 1, "inf_pos": 0, "inf_neg": 0, )"
                              R"("zero": 1, "amax_idx": 2, "h_set": ")"));
  EXPECT_THAT(line, HasSubstr(R"("exp_hist": [[0, 1], [128, 1], [129, 1]])"));
}

class Tracer : public ::testing::Test {
 protected:
  TraceOptions Options() {
    TraceOptions options;
    options.enabled = true;
    options.output = dir_.File("deep/er/trace_<pid>.jsonl");
    return options;
  }

  std::vector<std::string> Lines() {
    std::vector<std::string> lines =
        absl::StrSplit(ReadFile(dir_.File("deep/er/trace_42.jsonl")), '\n');
    EXPECT_EQ(lines.back(), "");
    lines.pop_back();
    return lines;
  }

  TempDir dir_;
  const std::vector<float> values_ = {1, -3};
};

TEST_F(Tracer, IsNotThereWhenOff) {
  EXPECT_EQ(*ActivationTracer::Create(TraceOptions(), 42), nullptr);
}

TEST_F(Tracer, SearchesNamesAndSaysWhatItAttached) {
  TraceOptions options = Options();
  options.layers = "block\\.0";
  ASSERT_OK_AND_ASSIGN(const auto tracer,
                       ActivationTracer::Create(options, 42));
  EXPECT_THAT(tracer->Attach({"", "block", "block.0", "block.0.proj"}),
              StartsWith("activation trace attached to 2 modules"));
  EXPECT_TRUE(tracer->Traces("block.0.proj"));
  EXPECT_FALSE(tracer->Traces("block"));
  EXPECT_FALSE(tracer->Traces(""));
}

TEST_F(Tracer, NamesANearModuleWhenThePatternSelectsNone) {
  TraceOptions options = Options();
  options.layers = "blocs.0";
  ASSERT_OK_AND_ASSIGN(const auto tracer,
                       ActivationTracer::Create(options, 42));
  EXPECT_THAT(tracer->Attach({"", "blocks.0", "head"}),
              HasSubstr("no module name matches: try 'blocks.0'"));
}

TEST_F(Tracer, AppendsRecordsWithTheStepOfTheThread) {
  for (int run = 0; run < 2; ++run) {
    ASSERT_OK_AND_ASSIGN(const auto tracer,
                         ActivationTracer::Create(Options(), 42));
    const TraceStep outer(3);
    {
      const TraceStep inner(7);
      EXPECT_TRUE(tracer->Record("m", "out", ViewOf(values_, {2})).ok());
    }
    EXPECT_EQ(CurrentTraceStep(), 3);
    std::thread([] { EXPECT_EQ(CurrentTraceStep(), std::nullopt); }).join();
  }
  EXPECT_EQ(CurrentTraceStep(), std::nullopt);
  EXPECT_THAT(Lines(), ::testing::ElementsAre(
                           R"({"module": "m", "tensor": "out", "step": 7, )"
                           R"("abs_mean": 2.0, "sum": -2.0})",
                           R"({"module": "m", "tensor": "out", "step": 7, )"
                           R"("abs_mean": 2.0, "sum": -2.0})"));
}

TEST_F(Tracer, AStepFilterDropsCallsWithoutAStep) {
  TraceOptions options = Options();
  options.steps = {0, 2};
  ASSERT_OK_AND_ASSIGN(const auto tracer,
                       ActivationTracer::Create(options, 42));
  EXPECT_TRUE(tracer->Record("m", "out", ViewOf(values_, {2})).ok());
  for (int step = 0; step < 4; ++step) {
    const TraceStep scope(step);
    EXPECT_TRUE(tracer->Record("m", "out", ViewOf(values_, {2})).ok());
  }
  EXPECT_EQ(Lines().size(), 2u);
}

TEST_F(Tracer, AddsHeaderRankRunAndCallWhenAsked) {
  TraceOptions options = Options();
  options.header = true;
  options.rank = 3;
  options.run = "ü";
  options.call = true;
  ASSERT_OK_AND_ASSIGN(const auto tracer,
                       ActivationTracer::Create(options, 42));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(tracer->Record("m", "out", ViewOf(values_, {2})).ok());
  }
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], StartsWith(R"({"trace_header": {"version": 1,)"));
  EXPECT_THAT(lines[2], HasSubstr(R"("step": null, "rank": 3, "run": "\u00fc")"
                                  R"(, "call": 1, "abs_mean")"));
}

TEST_F(Tracer, ReportsAFullDiskOnce) {
  TraceOptions options = Options();
  options.output = "/dev/full";
  ASSERT_OK_AND_ASSIGN(const auto tracer,
                       ActivationTracer::Create(options, 42));
  EXPECT_THAT(tracer->Record("m", "out", ViewOf(values_, {2})),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("cannot write to /dev/full")));
  EXPECT_TRUE(tracer->Record("m", "out", ViewOf(values_, {2})).ok());
}

TEST_F(Tracer, RefusesAPatternThatDoesNotCompile) {
  TraceOptions options = Options();
  options.layers = "(";
  EXPECT_THAT(ActivationTracer::Create(options, 42),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("FASTVIDEO_TRACE_LAYERS: regular")));
}

}  // namespace
}  // namespace firstframe
