#include "lib/phase/phase_document.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/phase/phase_summary.h"
#include "lib/phase/phase_test_report.h"
#include "lib/testing/status_matchers.h"
#include "simdjson.h"

namespace firstframe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StatusIs;

PhaseReport MakeRun(std::vector<std::pair<std::string, int64_t>> roots) {
  PhaseReport run = {.lanes = {{.name = "main"}}};
  for (const auto& [name, duration_ns] : roots) {
    run.phases.push_back({.id = static_cast<int64_t>(run.phases.size()),
                          .name = name,
                          .start_offset_ns = run.recording_duration_ns,
                          .duration_ns = duration_ns});
    run.recording_duration_ns += duration_ns;
  }
  return run;
}

TEST(PhaseSummary, TakesEachPathOverItsRuns) {
  const PhaseSummary summary = SummarizePhases(std::vector<PhaseReport>{
      MakeRun({{"exec", 10}, {"load", 100}}),
      MakeRun({{"exec", 30}, {"compile", 7}, {"load", 300}}),
      MakeRun({{"exec", 20}, {"load", 150}, {"load", 50}})});
  ASSERT_EQ(summary.phases.size(), 3u);
  EXPECT_EQ(summary.phases[0].path, "exec");
  EXPECT_THAT(summary.phases[0].duration.samples_ns, ElementsAre(10, 30, 20));
  EXPECT_EQ(summary.phases[0].duration.min_ns, 10);
  EXPECT_EQ(summary.phases[0].duration.median_ns, 20);
  EXPECT_EQ(summary.phases[0].duration.p95_ns, 29);
  // New in the second run, in its place in time.
  EXPECT_EQ(summary.phases[1].path, "compile");
  EXPECT_THAT(summary.phases[1].duration.samples_ns, ElementsAre(7));
  EXPECT_THAT(summary.phases[2].duration.samples_ns,
              ElementsAre(100, 300, 200));
  EXPECT_EQ(summary.recording.median_ns, 220);
  EXPECT_TRUE(SummarizePhases({}).phases.empty());
}

std::string ToJson(const PhaseDocument& document) {
  std::string text;
  JsonWriter json(&text);
  WritePhaseDocument(document, json);
  return text;
}

TEST(PhaseDocument, ReadsBack) {
  PhaseReport report = MakePhaseTestReport();
  report.phases[3].error = "short read";
  const PhaseDocument document = {.tool = "vae_startup",
                                  .context_json = R"({"cpu":"x"})",
                                  .samples = {report, report},
                                  .sample_facts_json = {R"({"pid":1})", ""}};
  const std::string text = ToJson(document);
  simdjson::dom::parser parser;
  simdjson::dom::object root = parser.parse(text).get_object();
  EXPECT_EQ(std::string_view(root["schema"]["name"]), "firstframe.phases");
  EXPECT_EQ(int64_t(root["summary"]["runs"]), 2);
  EXPECT_EQ(int64_t(root["summary"]["phases"].at(1)["median_ns"]), 40'000'000);
  ASSERT_OK_AND_ASSIGN(const PhaseDocument read, ParsePhaseDocument(text));
  EXPECT_EQ(read.tool, "vae_startup");
  EXPECT_EQ(read.context_json, R"({"cpu":"x"})");
  EXPECT_EQ(read.samples, document.samples);
  EXPECT_EQ(read.sample_facts_json, document.sample_facts_json);
}

TEST(PhaseDocument, NamesTheSampleThatIsBroken) {
  EXPECT_THAT(ParsePhaseDocument(R"({"samples":[{"phases":[]}]})"),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("samples[0]: recording_duration_ns")));
  EXPECT_THAT(ParsePhaseDocument(R"({"schema":{"name":"x"},"samples":[]})"),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("found 'x', expected 'firstframe.phases'")));
  EXPECT_THAT(
      ParsePhaseDocument("7"),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("not a JSON object")));
}

TEST(PhaseDocument, ALoneReportIsOneSample) {
  ASSERT_OK_AND_ASSIGN(
      const PhaseDocument read,
      ParsePhaseDocument(R"({"recording_duration_ns":5,"phases":[]})"));
  ASSERT_EQ(read.samples.size(), 1u);
  EXPECT_EQ(read.samples[0].recording_duration_ns, 5);
}

}  // namespace
}  // namespace firstframe
