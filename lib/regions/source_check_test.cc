#include "lib/regions/source_check.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/regions/source_tree.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Lines(const TempDir& dir, const SourceCheck& check) {
  std::vector<std::string> lines;
  for (const RegionFinding& finding : check.findings) {
    lines.push_back(absl::StrCat(
        finding.path.substr(dir.path().size() + 1), ":", finding.line, " ",
        RegionFindingKindName(finding.kind), " ", finding.name));
  }
  return lines;
}

TEST(SourceCheck, ReportsEveryKind) {
  const TempDir dir;
  dir.Write("profiler.py", R"py(
register_profiler_region("decode", "d")
register_profiler_region("idle", "d")
register_profiler_region("decode", "again")
# register_profiler_region("post", "d")
)py");
  dir.Write("use.py", R"py(
with profiler_region("decode"): pass
with profiler_region("decod"): pass
with profiler_region("elsewhere_entirely"): pass
with profiler_region("elsewhere_entirely"): pass
)py");
  dir.Write("docs/guide.md",
            "- `profiler_region_decode`\n"
            "- `profiler_region_post`\n");
  dir.Write("run.sh",
            "FASTVIDEO_TORCH_PROFILE_REGIONS=idle,d*,q*,absent_name x\n");
  dir.Write(".git/config.py", "profiler_region(\"hidden\")");
  ASSERT_OK_AND_ASSIGN(const SourceScan scan, ScanSourceTree(dir.path(), {}));
  EXPECT_EQ(scan.file_count, 4);
  const SourceCheck check =
      CheckSources(scan, RegionRegistry::Default(), {"own"});
  EXPECT_TRUE(check.tree_registers);
  EXPECT_THAT(check.registered, ElementsAre("decode", "idle", "own"));
  EXPECT_THAT(
      Lines(dir, check),
      ElementsAre("docs/guide.md:2 documented_unregistered post",
                  "profiler.py:3 unused idle",
                  "profiler.py:3 undocumented idle",
                  "profiler.py:4 duplicate_registration decode",
                  "run.sh:1 unregistered_request absent_name",
                  "run.sh:1 unregistered_request q*",
                  "run.sh:1 requested_unused idle", "use.py:3 misspelt decod",
                  "use.py:4 unregistered_use elsewhere_entirely"));
  EXPECT_THAT(check.findings[0].message,
              HasSubstr("commented out at " + dir.File("profiler.py:5")));
  EXPECT_EQ(check.findings[7].nearest, "decode");
}

TEST(SourceCheck, WithoutRegistrationsTheRegistryCounts) {
  const TempDir dir;
  dir.Write("use.py",
            "with profiler_region(\"training_dit\"): pass\n"
            "with profiler_region(\"training_dot\"): pass\n");
  ASSERT_OK_AND_ASSIGN(const SourceScan scan,
                       ScanSourceTree(dir.path() + "/", {.threads = 1}));
  const SourceCheck check = CheckSources(scan, RegionRegistry::Default(), {});
  EXPECT_FALSE(check.tree_registers);
  EXPECT_THAT(Lines(dir, check), ElementsAre("use.py:2 misspelt training_dot"));
}

TEST(SourceCheck, ExcludesAndSingleFiles) {
  const TempDir dir;
  const std::string text = "with profiler_region(\"nope_nope\"): pass\n";
  dir.Write("tests/a.py", text);
  const std::string file = dir.Write("b.py", text);
  ASSERT_OK_AND_ASSIGN(
      const SourceScan scan,
      ScanSourceTree(dir.path(), {.exclude = {"tests/*", "b.*"}}));
  EXPECT_THAT(scan.mentions, IsEmpty());
  ASSERT_OK_AND_ASSIGN(const SourceScan one, ScanSourceTree(file, {}));
  EXPECT_EQ(one.mentions.size(), 1u);
  EXPECT_THAT(ScanSourceTree(dir.File("absent"), {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent")));
}

}  // namespace
}  // namespace firstframe
