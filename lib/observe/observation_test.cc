// Observes a real program, beside a stand-in for the CUDA driver.

#include "lib/observe/observation.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/observe/startup_facts.h"
#include "lib/observe/startup_timeline.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using testing::StatusIs;

constexpr char kFolder[] = "lib/observe/testprogram/";

class ObservationTest : public ::testing::Test {
 protected:
  ObservationTest() {
    const std::string here = std::filesystem::current_path();
    checkpoint_ = dir_.Write("model.safetensors", std::string(80000, 'x'));
    options_.scratch_folder = dir_.path();
    options_.argv = {here + "/" + kFolder + "program",
                     here + "/" + kFolder + "libfake_cuda.so", checkpoint_,
                     "17"};
  }

  testing::TempDir dir_;
  std::string checkpoint_;
  ObservationOptions options_;
};

TEST_F(ObservationTest, ChangesNothingAndSeesEverything) {
  ASSERT_OK_AND_ASSIGN(const Observation observation, Observe(options_));
  ASSERT_EQ(observation.launched.ShellCode(), 17);
  EXPECT_THAT(observation.problems, IsEmpty());
  // The program and its forked child; the vfork child is not a process of its
  // own.
  ASSERT_EQ(observation.processes.size(), 2u);
  EXPECT_TRUE(observation.processes[1].is_fork);
  EXPECT_EQ(observation.processes[1].parent_pid, observation.launched.pid);
  EXPECT_EQ(observation.processes[0].command, options_.argv);

  const StartupFacts facts =
      GatherStartupFacts(observation.launched, observation.processes);
  EXPECT_EQ(facts.cuda[kCudaModule].calls, 1u);
  // One from pageable memory, one from page-locked.
  EXPECT_EQ(facts.cuda[kCudaHostToDevice].calls, 2u);
  EXPECT_EQ(facts.cuda[kCudaHostToDevice].bytes, 8192u);
  EXPECT_EQ(facts.cuda[kCudaHostToDevice].submitted_bytes, 4096u);
  EXPECT_GE(facts.cuda[kCudaHostToDevice].ns, 1'000'000u);
  // One of each stream kind; the copy within the device is neither way.
  EXPECT_EQ(facts.cuda[kCudaDeviceToHost].calls, 2u);
  EXPECT_EQ(facts.cuda[kCudaDeviceToHost].bytes, 612u);
  const StartupMoments& moments = facts.moments;
  ASSERT_TRUE(moments.main_ns && moments.cuda_initialized_ns &&
              moments.first_context_ns && moments.first_host_to_device_ns &&
              moments.first_kernel_ns && moments.first_device_to_host_ns &&
              moments.first_region_ns && moments.exit_begin_ns);
  EXPECT_LT(*moments.main_ns, *moments.cuda_initialized_ns);
  EXPECT_LT(*moments.cuda_initialized_ns, *moments.first_context_ns);
  EXPECT_LT(*moments.first_context_ns, *moments.first_host_to_device_ns);
  EXPECT_LT(*moments.first_host_to_device_ns, *moments.first_kernel_ns);
  EXPECT_LT(*moments.first_kernel_ns, *moments.first_device_to_host_ns);
  EXPECT_LT(*moments.first_device_to_host_ns, *moments.first_region_ns);
  EXPECT_LT(*moments.first_region_ns, *moments.exit_begin_ns);
  EXPECT_FALSE(moments.python_ready_ns.has_value());
  // Main thread, other thread, child: each opens it twice.
  ASSERT_EQ(facts.files.size(), 6u);
  EXPECT_THAT(facts.files, Each(Field(&ObservedFile::path, checkpoint_)));
  EXPECT_EQ(facts.files[0].read_bytes, 1500u);
  EXPECT_EQ(facts.files[0].mapped_bytes, 70000u);
  EXPECT_GE(facts.files[1].read_bytes, 2000u);
  EXPECT_THAT(facts.libraries, Contains(Field(&LoadedLibrary::path,
                                              HasSubstr("libfake_cuda.so"))));
}

TEST_F(ObservationTest, PhasesOfTheMainThreadAddUpToTheWallTime) {
  ASSERT_OK_AND_ASSIGN(const Observation observation, Observe(options_));
  const PhaseReport report = BuildStartupTimeline(
      observation.launched, observation.processes, {.min_ns = 0});
  std::vector<std::string> roots, names;
  int64_t sum_ns = 0;
  for (const PhaseRecord& phase : report.phases) {
    names.push_back(phase.name);
    if (phase.parent_id || phase.lane != 0) continue;
    roots.push_back(phase.name);
    EXPECT_EQ(phase.start_offset_ns, sum_ns);
    sum_ns += phase.duration_ns;
  }
  EXPECT_THAT(roots, ElementsAre("process.exec", "process.dynamic_loading",
                                 "program", "process.exit"));
  EXPECT_EQ(sum_ns, report.recording_duration_ns);
  for (const char* name :
       {"load libfake_cuda.so", "cuda.init", "cuda.context", "cuda.module",
        "cuda.copy_h2d", "cuda.first_kernel", "cuda.copy_d2h",
        "open model.safetensors", "region warmup", "region inner"}) {
    EXPECT_THAT(names, Contains(name));
  }
  // Its thread and its child have rows of their own.
  ASSERT_EQ(report.lanes.size(), 3u);
  EXPECT_THAT(report.lanes[1].name, HasSubstr("program thread"));
  EXPECT_THAT(report.lanes[2].name, StartsWith("program ("));
}

TEST_F(ObservationTest, PassesSignalsAndExitCodesOn) {
  options_.argv = {"sh", "-c", "exit 3"};
  EXPECT_EQ(Observe(options_)->launched.ShellCode(), 3);
  options_.argv = {"sh", "-c", "kill -TERM $$"};
  EXPECT_EQ(Observe(options_)->launched.ShellCode(), 128 + 15);
  options_.argv = {"sh", "-c", "kill -TERM $PPID; sleep 5"};
  EXPECT_EQ(Observe(options_)->launched.ShellCode(), 128 + 15);
}

TEST_F(ObservationTest, FollowsAnExec) {
  options_.argv = {"sh", "-c", "exec sh -c 'exec true'"};
  ASSERT_OK_AND_ASSIGN(const Observation observation, Observe(options_));
  EXPECT_EQ(observation.processes.size(), 3u);
  const PhaseReport report =
      BuildStartupTimeline(observation.launched, observation.processes);
  int64_t sum_ns = 0;
  for (const PhaseRecord& phase : report.phases) {
    if (!phase.parent_id) sum_ns += phase.duration_ns;
  }
  EXPECT_EQ(sum_ns, report.recording_duration_ns);
}

TEST_F(ObservationTest, SaysWhatCannotBeStarted) {
  options_.argv = {"/no/such/program"};
  EXPECT_THAT(Observe(options_),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("/no/such/program: No such file")));
  options_.scratch_folder = "/no/such/folder";
  EXPECT_THAT(Observe(options_), StatusIs(absl::StatusCode::kNotFound,
                                          HasSubstr("/no/such/folder")));
}

TEST_F(ObservationTest, LeavesNothingBehind) {
  ASSERT_THAT(Observe(options_), testing::IsOk());
  int left = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
    left += entry.path().filename() != "model.safetensors";
  }
  EXPECT_EQ(left, 0);
}

}  // namespace
}  // namespace firstframe
