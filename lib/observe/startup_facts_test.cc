#include "lib/observe/startup_facts.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/observe/startup_timeline.h"
#include "simdjson.h"

namespace firstframe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ObservedProcess PythonProcess() {
  ObservedProcess process = {
      .pid = 5,
      .start_ns = 2'000'000,
      .main_ns = 3'000'000,
      .exit_ns = 96'000'000,
      .command = {"/usr/bin/python3", "-u", "a/train.py"},
      .python_start_ns = 13'000'000,
      .python_exit_ns = 95'000'000};
  // torch [20, 70) imports numpy [30, 50), which imports torch.x [35, 40).
  process.imports = {{5, 35'000'000, 40'000'000, "torch.x"},
                     {5, 30'000'000, 50'000'000, "numpy"},
                     {5, 20'000'000, 70'000'000, "torch"},
                     {6, 20'000'000, 21'500'000, "json"}};
  process.events = {{.kind = EventKind::kDlopen,
                     .tid = 5,
                     .name = "/x/libtorch.so",
                     .start_ns = 21'000'000,
                     .end_ns = 29'000'000,
                     .value = 3},
                    {.kind = EventKind::kLibrary,
                     .tid = 5,
                     .name = "/x/libtorch.so",
                     .value = 1000}};
  return process;
}

constexpr ProgramExit kLaunched = {.pid = 5,
                                   .fork_ns = 1'000'000,
                                   .exec_ns = 2'500'000,
                                   .exit_ns = 101'000'000};

TEST(StartupFacts, SelfTimesAddUpAndCumulativeTimesNest) {
  const StartupFacts facts = GatherStartupFacts(kLaunched, {PythonProcess()});
  ASSERT_EQ(facts.packages.size(), 3u);
  EXPECT_EQ(facts.packages[0].package, "torch");
  EXPECT_EQ(facts.packages[0].cumulative_ns, 50'000'000);
  EXPECT_EQ(facts.packages[0].self_ns, 35'000'000);
  EXPECT_EQ(facts.packages[0].modules, 2);
  EXPECT_EQ(facts.packages[1].package, "numpy");
  EXPECT_EQ(facts.packages[1].cumulative_ns, 20'000'000);
  EXPECT_EQ(facts.packages[1].self_ns, 15'000'000);
  EXPECT_EQ(*facts.moments.python_ready_ns, 12'000'000);
  EXPECT_EQ(*facts.moments.exit_begin_ns, 94'000'000);
}

TEST(StartupFacts, JsonIsValidAndTextNamesTheCostliest) {
  const StartupFacts facts = GatherStartupFacts(kLaunched, {PythonProcess()});
  std::string text;
  JsonWriter json(&text);
  WriteStartupFactsJson(facts, json);
  simdjson::dom::parser parser;
  simdjson::dom::object root = parser.parse(text).get_object();
  EXPECT_EQ(int64_t(root["wall_ns"]), 100'000'000);
  EXPECT_TRUE(root["moments"]["first_kernel_ns"].is_null());
  EXPECT_TRUE(root["cuda"]["copies_host_to_device"]["gb_per_s"].is_null());
  std::ostringstream out;
  WriteStartupFactsText(facts, out);
  EXPECT_THAT(out.str(),
              HasSubstr("imports: 4 modules of 3 packages, 51.5 ms"));
  EXPECT_THAT(out.str(), HasSubstr("/x/libtorch.so"));
}

TEST(StartupTimeline, NestsByTimeAndAddsUp) {
  const PhaseReport report = BuildStartupTimeline(kLaunched, {PythonProcess()});
  std::vector<std::string> lines;
  int64_t sum_ns = 0;
  for (const PhaseRecord& phase : report.phases) {
    std::string line = phase.name;
    for (const PhaseRecord* at = &phase; at->parent_id;) {
      for (const PhaseRecord& other : report.phases) {
        if (other.id == *at->parent_id) {
          at = &other;
          break;
        }
      }
      line = at->name + " > " + line;
    }
    lines.push_back(line);
    if (!phase.parent_id && phase.lane == 0) sum_ns += phase.duration_ns;
  }
  EXPECT_THAT(
      lines,
      ElementsAre("process.exec", "process.dynamic_loading", "python.start",
                  "program", "program > import torch", "import json",
                  "program > import torch > load libtorch.so",
                  "program > import torch > import numpy",
                  "program > import torch > import numpy > import torch.x",
                  "process.exit"));
  EXPECT_EQ(sum_ns, 100'000'000);
  EXPECT_EQ(report.lanes[0].name, "python3 train.py");
}

TEST(StartupTimeline, AProgramNotSeenFromInsideIsOnePhase) {
  const PhaseReport report = BuildStartupTimeline(kLaunched, {});
  ASSERT_EQ(report.phases.size(), 2u);
  EXPECT_EQ(report.phases[1].name, "program");
  EXPECT_EQ(report.phases[0].duration_ns + report.phases[1].duration_ns,
            100'000'000);
}

TEST(ShortCommand, LeavesFoldersAndFlagsOut) {
  const auto shortened = [](std::vector<std::string> command) {
    return ShortCommand(command);
  };
  EXPECT_EQ(shortened({}), "program");
  EXPECT_EQ(shortened({"/bin/torchrun", "x"}), "torchrun");
  EXPECT_EQ(shortened({"python", "-m", "http.server"}),
            "python -m http.server");
  EXPECT_EQ(shortened({"python3.12", "-X", "dev", "-c", "pass"}),
            "python3.12 -c");
}

}  // namespace
}  // namespace firstframe
