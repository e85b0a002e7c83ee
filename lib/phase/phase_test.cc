#include "lib/phase/phase.h"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status_macros.h"
#include "lib/testing/fake_clock.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::testing::ElementsAre;
using testing::FakeClock;
using ::testing::HasSubstr;
using testing::StatusIs;

class PhaseTest : public ::testing::Test {
 protected:
  FakeClock clock_{1000};
  PhaseRecorder recorder_{{.clock = &clock_}};

  std::vector<std::string> Names(const PhaseReport& report) {
    std::vector<std::string> names;
    for (const PhaseRecord& phase : report.phases) names.push_back(phase.name);
    return names;
  }
};

TEST_F(PhaseTest, NestsAndKeepsGapsInTheRecording) {
  {
    PhaseCollector collector(&recorder_);
    clock_.Advance(10);
    {
      ScopedPhase vae("component.vae");
      clock_.Advance(5);
      {
        ScopedPhase construct("vae.construct");
        clock_.Advance(20);
      }
      clock_.Advance(7);
    }
    clock_.Advance(3);
  }
  clock_.Advance(1000);  // after the collector: not part of the recording
  const PhaseReport report = recorder_.Report();
  EXPECT_EQ(report.recording_duration_ns, 45);
  ASSERT_EQ(report.phases.size(), 2u);
  const PhaseRecord expected_parent = {.id = 0,
                                       .name = "component.vae",
                                       .start_offset_ns = 10,
                                       .duration_ns = 32};
  const PhaseRecord expected_child = {.id = 1,
                                      .parent_id = 0,
                                      .name = "vae.construct",
                                      .start_offset_ns = 15,
                                      .duration_ns = 20};
  EXPECT_EQ(report.phases[0], expected_parent);
  EXPECT_EQ(report.phases[1], expected_child);
}

TEST_F(PhaseTest, NothingIsRecordedWithoutACollector) {
  { ScopedPhase phase("lost"); }
  EXPECT_EQ(RunPhase("lost too", [] { return 7; }), 7);
  EXPECT_TRUE(recorder_.Report().phases.empty());
  EXPECT_EQ(CurrentPhase().recorder, nullptr);
}

absl::Status LoadFails() {
  return RunPhase("vae.load", []() -> absl::Status {
    FF_RETURN_IF_ERROR(absl::NotFoundError("no file 'x'"));
    return absl::OkStatus();
  });
}

TEST_F(PhaseTest, AnEarlyReturnIsAnErrorWithItsMessage) {
  PhaseCollector collector(&recorder_);
  EXPECT_THAT(LoadFails(),
              StatusIs(absl::StatusCode::kNotFound, "no file 'x'"));
  const auto result = RunPhase("count", []() -> absl::StatusOr<int> {
    return absl::DataLossError("short read");
  });
  EXPECT_FALSE(result.ok());
  EXPECT_THAT(RunPhase("fine", []() -> absl::StatusOr<int> { return 3; }),
              testing::IsOkAndHolds(3));
  EXPECT_FALSE(RunPhase("silent", [] { return absl::AbortedError(""); }).ok());
  const PhaseReport report = recorder_.Report();
  ASSERT_THAT(Names(report),
              ElementsAre("vae.load", "count", "fine", "silent"));
  EXPECT_EQ(report.phases[0].status, PhaseStatus::kError);
  EXPECT_EQ(report.phases[0].error, "no file 'x'");
  EXPECT_EQ(report.phases[1].error, "short read");
  EXPECT_EQ(report.phases[2].status, PhaseStatus::kOk);
  EXPECT_EQ(report.phases[3].error, "ABORTED");
}

TEST_F(PhaseTest, RunPhasePassesResultsThrough) {
  PhaseCollector collector(&recorder_);
  EXPECT_EQ(*RunPhase("move only", [] { return std::make_unique<int>(5); }), 5);
  RunPhase("nothing", [] {});
  RunPhase("attributes", [](ScopedPhase& phase) {
    phase.SetAttribute("read_bytes", 512);
    phase.SetAttribute("read_bytes", size_t{513});
    phase.SetAttribute("rate_gb_per_s", 2.5);
    phase.SetAttribute("path", "a.safetensors");
  });
  const PhaseReport report = recorder_.Report();
  const std::vector<PhaseAttribute> expected = {
      {"read_bytes", int64_t{513}},
      {"rate_gb_per_s", 2.5},
      {"path", std::string("a.safetensors")}};
  EXPECT_EQ(report.phases.at(2).attributes, expected);
}

TEST_F(PhaseTest, AnExceptionFailsThePhasesItLeavesAndRestoresTheCollector) {
  PhaseCollector outer(&recorder_, "outer");
  PhaseRecorder inner_recorder({.clock = &clock_});
  try {
    PhaseCollector inner(&inner_recorder);
    ScopedPhase a("a");
    { ScopedPhase fine("fine"); }
    RunPhase("b", [] { throw std::runtime_error("lost"); });
  } catch (const std::runtime_error&) {
    // A phase of a handler is not itself left by the exception.
    ScopedPhase handler("handler");
  }
  const PhaseReport inner = inner_recorder.Report();
  ASSERT_THAT(Names(inner), ElementsAre("a", "fine", "b"));
  EXPECT_EQ(inner.phases[0].error, "left by an exception");
  EXPECT_EQ(inner.phases[1].status, PhaseStatus::kOk);
  EXPECT_EQ(inner.phases[2].error, "left by an exception");
  const PhaseReport report = recorder_.Report();
  ASSERT_THAT(Names(report), ElementsAre("handler"));
  EXPECT_EQ(report.phases[0].status, PhaseStatus::kOk);
}

TEST_F(PhaseTest, OpenPhasesEndWithTheReport) {
  PhaseCollector collector(&recorder_);
  ScopedPhase outer("outer");
  clock_.Advance(5);
  ScopedPhase inner("inner");
  clock_.Advance(4);
  PhaseReport report;
  std::thread watcher([&] {
    report = recorder_.Report(absl::CancelledError("interrupted by SIGINT"));
  });
  watcher.join();
  ASSERT_EQ(report.phases.size(), 2u);
  EXPECT_EQ(report.phases[0].duration_ns, 9);
  EXPECT_EQ(report.phases[1].duration_ns, 4);
  for (const PhaseRecord& phase : report.phases) {
    EXPECT_EQ(phase.status, PhaseStatus::kError);
    EXPECT_EQ(phase.error, "interrupted by SIGINT");
  }
  EXPECT_EQ(report.recording_duration_ns, 9);
  EXPECT_EQ(recorder_.Report().phases[0].error, "still open");
}

TEST_F(PhaseTest, ThreadsJoinUnderAPhaseAndOnlyWhenAsked) {
  PhaseCollector collector(&recorder_);
  {
    ScopedPhase read("read");
    const PhaseAnchor anchor = CurrentPhase();
    std::thread([] { ScopedPhase unseen("unseen"); }).join();
    std::thread([&] {
      PhaseCollector worker(anchor, "reader 1");
      ScopedPhase shard("shard 1");
      clock_.Advance(8);
    }).join();
    std::thread([] {
      PhaseCollector nothing(PhaseAnchor{}, "reader 2");
      ScopedPhase unseen("unseen");
    }).join();
  }
  const PhaseReport report = recorder_.Report();
  ASSERT_THAT(Names(report), ElementsAre("read", "shard 1"));
  EXPECT_EQ(report.phases[1].parent_id, 0);
  EXPECT_EQ(report.phases[1].lane, 1);
  ASSERT_EQ(report.lanes.size(), 2u);
  EXPECT_EQ(report.lanes[1].name, "reader 1");
  EXPECT_NE(report.lanes[0].tid, report.lanes[1].tid);
}

TEST_F(PhaseTest, MeasuredPhasesMayPrecedeTheRecorder) {
  PhaseCollector collector(&recorder_);
  clock_.Advance(5);
  ScopedPhase main_phase("device_setup");
  recorder_.Add({.name = "process.exec", .start_ns = 400, .end_ns = 900});
  recorder_.Add({.name = "page_faults",
                 .start_ns = 1006,
                 .end_ns = 1001,
                 .status = absl::InternalError("clock went back"),
                 .parent = CurrentPhase()});
  clock_.Advance(5);
  const PhaseReport report = recorder_.Report();
  ASSERT_THAT(Names(report),
              ElementsAre("process.exec", "device_setup", "page_faults"));
  EXPECT_EQ(report.phases[0].start_offset_ns, 0);
  EXPECT_EQ(report.phases[0].duration_ns, 500);
  EXPECT_EQ(report.phases[1].start_offset_ns, 605);
  EXPECT_EQ(report.phases[2].parent_id, report.phases[1].id);
  EXPECT_EQ(report.phases[2].duration_ns, 0);
  EXPECT_EQ(report.phases[2].error, "clock went back");
  EXPECT_EQ(report.recording_duration_ns, 610);
}

TEST_F(PhaseTest, SynchronizesBeforeEachReading) {
  int calls = 0;
  PhaseRecorder recorder({.clock = &clock_, .synchronize = [&] {
                            ++calls;
                            clock_.Advance(100);
                          }});
  PhaseCollector collector(&recorder);
  {
    ScopedPhase phase("kernel");
    EXPECT_EQ(calls, 1);
    clock_.Advance(1);
  }
  EXPECT_EQ(calls, 2);
  // The work still in flight at the end counts, that at the start does not.
  EXPECT_EQ(recorder.Report().phases[0].duration_ns, 101);
}

TEST_F(PhaseTest, HoldsManyPhasesAndLongNames) {
  PhaseCollector collector(&recorder_);
  constexpr int kCount = 5000;
  for (int i = 0; i < kCount; ++i) {
    ScopedPhase phase(std::string(i % 7 == 0 ? 9000 : 20, 'a' + i % 26));
    clock_.Advance(1);
  }
  const PhaseReport report = recorder_.Report();
  ASSERT_EQ(report.phases.size(), static_cast<size_t>(kCount));
  for (int i = 0; i < kCount; ++i) {
    const PhaseRecord& phase = report.phases[i];
    ASSERT_EQ(phase.start_offset_ns, i);
    ASSERT_EQ(phase.name, std::string(i % 7 == 0 ? 9000 : 20, 'a' + i % 26));
  }
}

// Run under --config=tsan this shows that the log needs no lock.
TEST_F(PhaseTest, ReportsWhileAThreadRecords) {
  std::atomic<bool> is_done = false;
  std::thread writer([&] {
    PhaseCollector collector(&recorder_, "writer");
    for (int i = 0; i < 2000; ++i) {
      RunPhase("outer", [&](ScopedPhase& phase) {
        phase.SetAttribute("n", i);
        ScopedPhase inner(i % 2 == 0 ? "even" : "odd");
      });
    }
    is_done = true;
  });
  while (!is_done) {
    for (const PhaseRecord& phase : recorder_.Report().phases) {
      ASSERT_THAT(phase.name, ::testing::AnyOf("outer", "even", "odd"));
      ASSERT_EQ(phase.name == "outer", !phase.parent_id.has_value());
    }
  }
  writer.join();
  EXPECT_EQ(recorder_.Report().phases.size(), 4000u);
}

}  // namespace
}  // namespace firstframe
