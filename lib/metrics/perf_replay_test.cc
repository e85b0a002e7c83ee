// What a program logged and what perf_report makes of its records are the same
// lines, whatever the program did.

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/jsonl_reader.h"
#include "lib/metrics/perf_input.h"
#include "lib/metrics/perf_report.h"
#include "lib/metrics/request_recorder.h"
#include "lib/metrics/training_recorder.h"
#include "lib/testing/fake_clock.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::FakeClock;
using ::firstframe::testing::IsOk;
using ::firstframe::testing::TempDir;

std::vector<std::string> LinesOf(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

// The lines of --format=log for the records in `path`.
std::vector<std::string> Replay(const std::string& path) {
  std::vector<std::string> lines;
  PerfObserver observer;
  observer.on_request = [&](const RequestRecord& record) {
    lines.push_back(FormatRequest("[Perf][rank0]", record));
  };
  observer.on_window = [&](const TrainWindowRecord& record) {
    lines.push_back(FormatTrainWindow("[Perf][rank0]", record));
  };
  PerfReport report(ReportOptions{});
  PerfInputs inputs;
  auto reader = JsonlReader::Open(path);
  EXPECT_THAT(reader, IsOk());
  EXPECT_THAT(ReadPerfRecords(*reader, true, observer, report, inputs), IsOk());
  for (const std::string& line : report.SummaryLines()) lines.push_back(line);
  return lines;
}

class PerfReplayTest : public ::testing::Test {
 protected:
  void Advance(double seconds) {
    clock_.Advance(static_cast<int64_t>(seconds * 1e9));
  }
  double Uniform() {
    return std::uniform_real_distribution<double>(0, 1)(random_);
  }

  std::mt19937 random_{7};
  FakeClock clock_;
  TempDir dir_;
};

TEST_F(PerfReplayTest, Requests) {
  for (int run = 0; run < 20; ++run) {
    PerfSettings settings{.level = 1,
                          .json_path = dir_.File(std::to_string(run))};
    settings.warmup = run % 3;
    std::ostringstream log;
    PerfSink sink(settings, &log);
    {
      MarkerSource markers(clock_);
      RequestRecorder recorder(sink, markers);
      recorder.SetTransformer(
          "transformer",
          {.params = 1000000, .widths = {64, 64, 2}, .text_tokens = 77});
      for (int i = 0; i < 5 + run; ++i) {
        RequestScope request(recorder);
        for (const char* name : {"text_encoder", "transformer", "vae_dec"}) {
          const int calls = static_cast<int>(Uniform() * 4);
          for (int call = 0; call < calls; ++call) {
            StageScope stage(name);
            stage.SetShape(1560, 2);
            Advance(Uniform());
          }
        }
        Advance(Uniform() / 100);
      }
      recorder.ReportSummary();
    }
    EXPECT_EQ(Replay(*settings.json_path), LinesOf(log.str())) << "run " << run;
  }
}

// The summary's percentiles are over steps, which records do not hold: an
// estimate is marked, and the truth lies within its bounds
// (window_steps_test.cc). Where it is not marked, it is the truth.
TEST_F(PerfReplayTest, TrainingWindows) {
  int exact = 0;
  for (int run = 0; run < 60; ++run) {
    PerfSettings settings{.level = 1,
                          .json_path = dir_.File(std::to_string(run))};
    settings.warmup = run % 4;
    settings.every = 5 + run % 7;
    settings.total_steps = 1000;
    // From alike to widely spread, so that all kinds of summaries occur.
    const double spread = run % 3 == 0 ? 1e-4 : 0.02 * run;
    std::ostringstream log;
    PerfSink sink(settings, &log);
    MarkerSource markers(clock_);
    TrainingRecorder train(sink, markers);
    for (int step = 0; step < 8 + run; ++step) {
      Advance(0.02);
      MicroStepScope micro(train);
      Advance(0.01);
      for (const Phase phase :
           {Phase::kForward, Phase::kBackward, Phase::kClip}) {
        PhaseScope scope(train, phase);
        scope.SetShape(100 + step, 2);
        Advance(0.1 + spread * Uniform());
      }
      OptimizerScope optimizer(train, this, true);
      Advance(0.01);
    }
    train.Finish();
    std::vector<std::string> logged = LinesOf(log.str());
    std::vector<std::string> replayed = Replay(*settings.json_path);
    ASSERT_EQ(replayed.size(), logged.size());
    if (absl::StrContains(replayed.back(), "~")) {
      replayed.pop_back();
      logged.pop_back();
    } else {
      ++exact;
    }
    EXPECT_EQ(replayed, logged) << "run " << run;
  }
  EXPECT_GE(exact, 20);
}

}  // namespace
}  // namespace firstframe
