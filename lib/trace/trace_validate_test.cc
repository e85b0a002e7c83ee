#include "lib/trace/trace_validate.h"

#include <cstdlib>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TraceValidation Validate(const std::string& path,
                         std::vector<TraceConsumer> consumers) {
  auto result = ValidateTrace(
      path, {.consumers = consumers, .temporary_folder = ::testing::TempDir()});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : TraceValidation{};
}

std::set<std::string> Rules(const TraceValidation& validation, bool errors) {
  std::set<std::string> rules;
  for (const TraceProblem& problem : validation.problems) {
    if (problem.is_error == errors) rules.insert(problem.rule);
  }
  return rules;
}

constexpr char kGood[] = R"({"schemaVersion": 1,
"deviceProperties": [{"id": 0, "name": "GPU"}],
"distributedInfo": {"rank": 0}, "baseTimeNanoseconds": 1790857026000000000,
"traceEvents": [
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":514,"tid":514,"ts":10,"dur":90,"args":{"External id":1}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":514,"tid":514,"ts":12,"dur":5,"args":{"correlation":4}},
{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":20,"dur":30,"args":{"stream":7,"correlation":4,"device":0}}
]})";

TEST(TraceValidate, AGoodTraceIsGoodForAll) {
  const TempDir dir;
  const TraceValidation validation =
      Validate(dir.Write("h_1.pt.trace.json", kGood),
               {TraceConsumer::kPerfetto, TraceConsumer::kHta,
                TraceConsumer::kTensorBoard});
  EXPECT_THAT(Rules(validation, true), IsEmpty());
  EXPECT_THAT(Rules(validation, false), IsEmpty());
  EXPECT_FALSE(validation.HasErrors());
}

TEST(TraceValidate, EachRuleIsFound) {
  const auto x = [](const std::string& members) {
    return absl::StrCat(R"([{"ph":"X","cat":"cpu_op","name":"n",)", members,
                        "}]");
  };
  struct Case {
    TraceConsumer consumer;
    bool error;
    const char* rule;
    std::string text;
  };
  constexpr auto kP = TraceConsumer::kPerfetto;
  constexpr auto kH = TraceConsumer::kHta;
  constexpr auto kT = TraceConsumer::kTensorBoard;
  const Case kCases[] = {
      {kP, true, "truncated", R"({"traceEvents":[{"ph":"X","name":"a"},)"},
      {kP, false, "truncated", R"([{"ph":"X","name":"a"},)"},
      {kP, true, "bare_word", x(R"("ts":1,"dur":NaN)")},
      {kP, true, "duration_not_a_number", x(R"("ts":1,"dur":null)")},
      {kP, true, "control_character", x("\"ts\":1,\"dur\":1,\"b\":\"\x01\"")},
      {kP, true, "huge_number",
       x(R"("ts":1,"dur":1,"pid":99999999999999999999)")},
      {kP, false, "bare_word_in_args", x(R"("ts":1,"dur":1,"args":{"v":nan})")},
      {kP, false, "args_not_object", x(R"("ts":1,"dur":1,"args":[])")},
      {kP, false, "negative_pid", x(R"("ts":1,"dur":1,"pid":-1)")},
      {kP, false, "tid_out_of_range", x(R"("ts":1,"dur":1,"tid":-7)")},
      {kP, false, "no_duration", x(R"("ts":1)")},
      {kP, false, "negative_time", x(R"("ts":-1,"dur":1)")},
      {kP, false, "epoch_time", x(R"("ts":1790857026000000,"dur":1)")},
      {kP, false, "partial_overlap",
       R"([{"ph":"X","cat":"c","name":"a","pid":1,"tid":1,"ts":10,"dur":10},)"
       R"({"ph":"X","cat":"c","name":"b","pid":1,"tid":1,"ts":15,"dur":10}])"},
      {kP, false, "pid_is_device",
       R"([{"ph":"X","cat":"cpu_op","name":"a","pid":0,"tid":1,"ts":1,"dur":1},)"
       R"({"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":5,"dur":1}])"},
      {kH, true, "bare_array", x(R"("ts":1,"dur":1)")},
      {kH, true, "no_rank",
       R"({"distributedInfo":{"rank":0},"traceEvents":[]})"},
      {kH, true, "no_rank", R"({"traceEvents":[]})"},
      {kH, true, "no_linked_event", x(R"("ts":1,"dur":1)")},
      {kH, false, "host_event_with_stream",
       x(R"("ts":1,"dur":1,"args":{"stream":1})")},
      {kH, false, "stream_zero",
       R"([{"ph":"X","cat":"kernel","name":"a","ts":1,"dur":9,"args":{"stream":0}}])"},
      {kH, false, "first_event_is_launch",
       R"([{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":1,"dur":9}])"},
      {kT, true, "no_category", R"([{"ph":"X","name":"a","ts":1,"dur":1}])"},
      {kT, true, "file_name", x(R"("ts":1,"dur":1)")},
      {kT, false, "no_step", x(R"("ts":1,"dur":1)")},
      {kT, false, "window_too_long",
       R"([{"ph":"i","name":"Iteration Start: x","ts":0},)"
       R"({"ph":"i","name":"Record Window End","ts":90000000}])"},
  };
  const TempDir dir;
  for (const Case& c : kCases) {
    const TraceValidation validation =
        Validate(dir.Write("t.json", c.text), {c.consumer});
    EXPECT_THAT(Rules(validation, c.error), Contains(c.rule)) << c.text;
    EXPECT_EQ(validation.HasErrors(), !Rules(validation, true).empty());
  }
}

TEST(TraceValidate, DuplicateRanks) {
  const TempDir dir;
  std::vector<TraceValidation> both;
  for (const char* name : {"a.pt.trace.json", "b.pt.trace.json"}) {
    both.push_back(Validate(dir.Write(name, kGood), {TraceConsumer::kHta}));
  }
  CheckRanks(&both);
  EXPECT_FALSE(both[0].HasErrors());
  EXPECT_THAT(Rules(both[1], true), Contains("duplicate_rank"));
}

TEST(TraceValidate, Names) {
  EXPECT_THAT(ParseTraceConsumers("perfeto"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("did you mean perfetto?")));
  EXPECT_FALSE(ParseTraceConsumers("").ok());
  EXPECT_EQ(ParseTraceConsumers("perfetto,hta,tensorboard")->size(), 3u);
}

TEST(TraceValidate, Reports) {
  const TempDir dir;
  const TraceValidation validation =
      Validate(dir.Write("t.json", R"([{"ph":"X","name":"a","dur":null}])"),
               {TraceConsumer::kPerfetto});
  std::ostringstream text, json;
  WriteValidationText(validation, text);
  WriteValidationJsonl(validation, {TraceConsumer::kPerfetto}, json);
  EXPECT_THAT(text.str(), HasSubstr("perfetto: error: dur is not a number"));
  EXPECT_THAT(json.str(), HasSubstr(R"("rule":"duration_not_a_number")"));
  EXPECT_THAT(json.str(), HasSubstr(R"("valid":false})"));
}

TEST(TraceValidate, Corpus) {
  const char* const corpus = std::getenv("FIRSTFRAME_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "FIRSTFRAME_CORPUS is not set";
  // HTA's own test traces load in HTA and open in Perfetto.
  EXPECT_THAT(Rules(Validate(absl::StrCat(corpus,
                                          "/kineto/hta_ns_resolution_"
                                          "rank-0.pt.trace.json.gz"),
                             {TraceConsumer::kPerfetto, TraceConsumer::kHta}),
                    true),
              IsEmpty());
  // This one has no distributedInfo: HTA refuses it.
  EXPECT_THAT(Rules(Validate(absl::StrCat(corpus,
                                          "/kineto/tracelens_h100_"
                                          "bert-small.json.gz"),
                             {TraceConsumer::kHta}),
                    true),
              Contains("no_rank"));
}

}  // namespace
}  // namespace firstframe
