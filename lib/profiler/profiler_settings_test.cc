#include "lib/profiler/profiler_settings.h"

#include <unistd.h>

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ProfilerSettings Read(const std::map<std::string, std::string>& environment) {
  return ReadProfilerSettings([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(ProfilerSettings, EmptyEnvironmentIsOff) {
  const ProfilerSettings settings = Read({});
  EXPECT_EQ(settings.dir, "");
  EXPECT_FALSE(settings.has_regions);
  EXPECT_FALSE(settings.with_stack);
  EXPECT_EQ(settings.rank, 0);
  EXPECT_THAT(settings.warnings, IsEmpty());
}

TEST(ProfilerSettings, KnobWords) {
  for (const char* word : {"0", "false", "False", " no ", "OFF", ""}) {
    EXPECT_FALSE(
        Read({{"FASTVIDEO_TORCH_PROFILER_WITH_STACK", word}}).with_stack)
        << word;
  }
  for (const char* word : {"1", "true", "YES", "on"}) {
    const auto settings = Read({{"FASTVIDEO_TORCH_PROFILER_WITH_STACK", word}});
    EXPECT_TRUE(settings.with_stack) << word;
    EXPECT_THAT(settings.warnings, IsEmpty());
  }
  const auto settings =
      Read({{"FASTVIDEO_TORCH_PROFILER_WITH_FLOPS", "2"},
            {"FASTVIDEO_TORCH_PROFILER_RECORD_SHAPES", "1"},
            {"FASTVIDEO_TORCH_PROFILER_WITH_PROFILE_MEMORY", "1"}});
  EXPECT_TRUE(settings.with_flops);
  EXPECT_TRUE(settings.record_shapes);
  EXPECT_TRUE(settings.with_memory);
  EXPECT_THAT(settings.warnings, ElementsAre(HasSubstr("WITH_FLOPS='2'")));
}

TEST(ProfilerSettings, HomeRankAndHalfSettings) {
  const auto settings = Read({{"FASTVIDEO_TORCH_PROFILER_DIR", "~/traces"},
                              {"HOME", "/home/x"},
                              {"RANK", "three"},
                              {"SLURM_PROCID", "3"},
                              {"WORLD_SIZE", "8"}});
  EXPECT_EQ(settings.dir, "/home/x/traces");
  EXPECT_EQ(settings.rank, 3);
  EXPECT_EQ(settings.world_size, 8);
  EXPECT_THAT(settings.warnings,
              ElementsAre(HasSubstr("RANK='three'"),
                          HasSubstr("PROFILE_REGIONS is not: nothing")));
  EXPECT_THAT(Read({{"FASTVIDEO_TORCH_PROFILE_REGIONS", ""}}).warnings,
              ElementsAre(HasSubstr("PROFILER_DIR is not: nothing")));
}

TEST(ProfilerSettings, TraceDir) {
  const TempDir dir;
  EXPECT_THAT(CheckTraceDir(""), IsEmpty());
  EXPECT_THAT(CheckTraceDir(dir.path()), IsEmpty());
  EXPECT_THAT(CheckTraceDir(dir.File("made/later")), IsEmpty());
  EXPECT_THAT(CheckTraceDir(dir.Write("file", "") + "/x"),
              ElementsAre(HasSubstr("is not a folder")));
  EXPECT_THAT(CheckTraceDir("relative"),
              ElementsAre(HasSubstr("expected an absolute path")));
  if (::geteuid() != 0) {
    EXPECT_THAT(CheckTraceDir("/proc/none"),
                ElementsAre(HasSubstr("not writable")));
  }
}

}  // namespace
}  // namespace firstframe
