#include "lib/profiler/profiler.h"

#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/regions/region_registry.h"
#include "lib/regions/region_selection.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"
#include "lib/trace/trace_reader.h"
#include "lib/trace/trace_validate.h"

namespace firstframe {
namespace {

using ::firstframe::testing::TempDir;
using ::testing::Contains;
using ::testing::HasSubstr;

ProfilerOptions Options(const TempDir& dir, const std::string& regions) {
  ProfilerOptions options;
  options.session.dir = dir.File("traces");
  options.session.regions =
      RegionSelection::Parse(regions, RegionRegistry::Default());
  options.session.collect_gpu = false;
  options.session.rank = 3;
  options.session.world_size = 8;
  return options;
}

struct Recorded {
  std::multiset<std::string> names;
  std::string trace;
  std::vector<std::string> messages;
};

Recorded StopAndRead(const std::string& stem) {
  Recorded recorded;
  recorded.messages = Profiler::Stop();
  recorded.trace = stem + ".pt.trace.json.gz";
  auto reader = TraceReader::Open(recorded.trace);
  EXPECT_TRUE(reader.ok()) << reader.status();
  if (!reader.ok()) return recorded;
  for (TraceEvent event; *(*reader)->Next(&event);) {
    if (event.phase != 'M') recorded.names.insert(std::string(event.name));
  }
  EXPECT_EQ((*reader)->info().Rank(), 3);
  return recorded;
}

TEST(Profiler, OffRecordsNothing) {
  EXPECT_EQ(Profiler::Get(), nullptr);
  FF_PROFILE_REGION("model_loading");
  FF_PROFILE_SPAN("span");
  EXPECT_EQ(ProfiledCall("model_loading", [] { return 7; }), 7);
  EXPECT_TRUE(Profiler::Stop().empty());
}

TEST(Profiler, CollectsInsideSelectedRegionsAlone) {
  const TempDir dir;
  ASSERT_OK_AND_ASSIGN(
      Profiler* const profiler,
      Profiler::Start(Options(dir, "model_loading,training_dit,typo_name")));
  ASSERT_OK_AND_ASSIGN(Profiler* const again,
                       Profiler::Start(Options(dir, "all")));
  EXPECT_EQ(again, profiler) << "later callers share the first";
  const std::string stem = profiler->session().stem();
  { FF_PROFILE_SPAN("before"); }
  {
    FF_PROFILE_REGION("profiler_region_model_loading");
    { FF_PROFILE_SPAN("inside"); }
    {
      FF_PROFILE_REGION("inference_denoising");  // not selected: a span
    }
    // Another thread records while the region is open here.
    std::thread([] { FF_PROFILE_SPAN("other_thread"); }).join();
  }
  { FF_PROFILE_SPAN("after"); }
  EXPECT_THROW(ProfiledCall("model_loading",
                            []() -> int { throw std::runtime_error("x"); }),
               std::runtime_error);
  { FF_PROFILE_SPAN("after_the_exception"); }

  const Recorded recorded = StopAndRead(stem);
  EXPECT_EQ(recorded.names.count("fastvideo.region::model_loading"), 2u);
  EXPECT_EQ(recorded.names.count("inside"), 1u);
  EXPECT_EQ(recorded.names.count("other_thread"), 1u);
  EXPECT_EQ(recorded.names.count("fastvideo.region::inference_denoising"), 1u);
  for (const char* outside : {"before", "after", "after_the_exception"}) {
    EXPECT_EQ(recorded.names.count(outside), 0u) << outside;
  }
  EXPECT_EQ(recorded.names.count("fastvideo.profiler.enable_collection"), 2u);
  EXPECT_EQ(recorded.names.count("fastvideo.profiler.disable_collection"), 2u);
  EXPECT_THAT(recorded.messages,
              Contains(HasSubstr("'training_dit' was requested and never")));
  EXPECT_THAT(recorded.messages, Contains(HasSubstr("'typo_name'")));

  // What was written opens everywhere; HTA wants GPU work, which is not here.
  ASSERT_OK_AND_ASSIGN(
      const TraceValidation validation,
      ValidateTrace(recorded.trace, {.consumers = {TraceConsumer::kPerfetto,
                                                   TraceConsumer::kTensorBoard},
                                     .temporary_folder = dir.path()}));
  for (const TraceProblem& problem : validation.problems) {
    EXPECT_FALSE(problem.is_error) << problem.message;
  }
}

TEST(Profiler, NothingSelectedIsNotAnError) {
  const TempDir dir;
  ASSERT_OK_AND_ASSIGN(Profiler* const profiler,
                       Profiler::Start(Options(dir, "no_such_region")));
  const std::string stem = profiler->session().stem();
  { FF_PROFILE_REGION("model_loading"); }
  const Recorded recorded = StopAndRead(stem);
  EXPECT_EQ(recorded.names.count("fastvideo.region::model_loading"), 0u);
  EXPECT_THAT(recorded.messages, Contains(HasSubstr("nothing is collected")));
}

TEST(Profiler, AFolderThatCannotBeMadeIsAnError) {
  const TempDir dir;
  ProfilerOptions options = Options(dir, "all");
  options.session.dir = dir.Write("file", "") + "/below";
  EXPECT_FALSE(Profiler::Start(std::move(options)).ok());
  EXPECT_EQ(Profiler::Get(), nullptr);
}

}  // namespace
}  // namespace firstframe
