#include "lib/activation/trace_options.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TraceEnvironment From(const std::map<std::string, std::string>& variables) {
  return ReadTraceEnvironment(
      [&](absl::string_view name) -> std::optional<std::string> {
        const auto found = variables.find(std::string(name));
        if (found == variables.end()) return std::nullopt;
        return found->second;
      });
}

TEST(TraceOptions, OnlyUnsetAndZeroDisable) {
  EXPECT_FALSE(ResolveTraceOptions(From({}))->enabled);
  EXPECT_FALSE(ResolveTraceOptions(From({{"FASTVIDEO_TRACE_ACTIVATIONS", "0"}}))
                   ->enabled);
  for (const char* value : {"1", "true", "false", "", "00", " 0"}) {
    EXPECT_TRUE(
        ResolveTraceOptions(From({{"FASTVIDEO_TRACE_ACTIVATIONS", value}}))
            ->enabled)
        << "'" << value << "'";
  }
}

TEST(TraceOptions, DefaultsAreFastVideos) {
  ASSERT_OK_AND_ASSIGN(
      const TraceOptions options,
      ResolveTraceOptions(From({{"FASTVIDEO_TRACE_ACTIVATIONS", "1"}})));
  EXPECT_EQ(options.layers, "");
  EXPECT_EQ(options.output, "/tmp/fv_trace_<pid>.jsonl");
  EXPECT_THAT(options.stats, ElementsAre(TraceStat::kAbsMean, TraceStat::kSum));
  EXPECT_FALSE(options.steps.has_value());
}

TEST(TraceOptions, StatsKeepTheUsersOrder) {
  ASSERT_OK_AND_ASSIGN(
      const TraceOptions options,
      ResolveTraceOptions(
          From({{"FASTVIDEO_TRACE_ACTIVATIONS", "1"},
                {"FASTVIDEO_TRACE_STATS", " shape,,max, abs_maen ,sk,max"}})));
  EXPECT_THAT(options.stats,
              ElementsAre(TraceStat::kShape, TraceStat::kMax, TraceStat::kSk));
  ASSERT_EQ(options.warnings.size(), 1u);
  EXPECT_THAT(options.warnings[0],
              HasSubstr("contains unknown stat 'abs_maen'; valid: ['abs_mean', "
                        "'amax_idx', 'dtype',"));
  EXPECT_THAT(options.warnings[0], HasSubstr("did you mean 'abs_mean'?"));
}

TEST(TraceOptions, NoValidStatTurnsTheTraceOff) {
  for (const char* stats : {"", "nonsense"}) {
    ASSERT_OK_AND_ASSIGN(
        const TraceOptions options,
        ResolveTraceOptions(From({{"FASTVIDEO_TRACE_ACTIVATIONS", "1"},
                                  {"FASTVIDEO_TRACE_STATS", stats}})));
    EXPECT_FALSE(options.enabled);
    EXPECT_THAT(options.warnings.back(), HasSubstr("trace disabled"));
  }
}

TEST(TraceOptions, StepsAreIntegers) {
  ASSERT_OK_AND_ASSIGN(
      const TraceOptions options,
      ResolveTraceOptions(From({{"FASTVIDEO_TRACE_ACTIVATIONS", "1"},
                                {"FASTVIDEO_TRACE_STEPS", "0, 15,,-3,15"}})));
  EXPECT_THAT(*options.steps, ElementsAre(-3, 0, 15));
  EXPECT_THAT(ResolveTraceOptions(From({{"FASTVIDEO_TRACE_ACTIVATIONS", "1"},
                                        {"FASTVIDEO_TRACE_STEPS", "1,x"}})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("FASTVIDEO_TRACE_STEPS: found 'x'")));
  EXPECT_FALSE(ResolveTraceOptions(From({{"FASTVIDEO_TRACE_ACTIVATIONS", "1"},
                                         {"FASTVIDEO_TRACE_STEPS", "  "}}))
                   ->steps.has_value());
}

}  // namespace
}  // namespace firstframe
