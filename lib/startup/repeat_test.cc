#include "lib/startup/repeat.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kDocument[] = R"({
  "schema": {"name": "firstframe.phases", "version": 1},
  "tool": {"name": "x", "version": "1", "commit": "c", "cuda_toolkit": "none"},
  "context": {"device": "cpu"},
  "samples": [{"facts": {"status": "ok"}, "recording_duration_ns": 10,
    "lanes": [{"name": "main", "pid": 1, "tid": 1}],
    "phases": [{"id": 0, "parent_id": null, "name": "first_decode",
                "start_offset_ns": 0, "duration_ns": 7, "status": "ok",
                "lane": 0}]}]
})";

RepeatOptions Shell(const std::string& script, int runs) {
  return {.argv = {"/bin/sh", "-c", script, "run", kDocument}, .runs = runs};
}

TEST(RepeatStartup, CollectsEachRun) {
  int prepared = 0;
  RepeatOptions options = Shell("printf %s \"$1\"", 3);
  options.prepare = [&] {
    ++prepared;
    return absl::OkStatus();
  };
  ASSERT_OK_AND_ASSIGN(const RepeatResult result, RepeatStartup(options));
  EXPECT_EQ(prepared, 3);
  ASSERT_EQ(result.document.samples.size(), 3u);
  EXPECT_EQ(result.document.context_json, R"({"device":"cpu"})");
  EXPECT_EQ(result.document.samples[2].phases[0].duration_ns, 7);
  EXPECT_GT(result.launched_wall_ns[2], 0);
  EXPECT_EQ(result.document.sample_facts_json[2],
            absl::StrCat("{\"launched_wall_ns\":", result.launched_wall_ns[2],
                         ",\"status\":\"ok\"}"));
}

TEST(RepeatStartup, KeepsAFailedRunThatWroteItsDocument) {
  ASSERT_OK_AND_ASSIGN(const RepeatResult result,
                       RepeatStartup(Shell("printf %s \"$1\"; exit 2", 1)));
  EXPECT_THAT(result.exit_codes, ElementsAre(2));
}

TEST(RepeatStartup, ARunWithoutADocumentIsAnError) {
  EXPECT_THAT(RepeatStartup(Shell("exit 3", 2)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("exit 3")));
  EXPECT_FALSE(RepeatStartup(Shell("echo '{\"schema\":{}}'", 1)).ok());
}

TEST(RepeatStartup, PassesTheTimeOfLaunch) {
  EXPECT_THAT(RepeatStartup(Shell(
                  "[ -n \"$FIRSTFRAME_LAUNCH_NS\" ] && printf %s \"$1\"", 1)),
              IsOk());
}

TEST(RepeatStartup, StopsWhenCancelled) {
  int done = 0;
  RepeatOptions options = Shell("printf %s \"$1\"", 5);
  options.progress = [&](int runs) { done = runs; };
  options.is_cancelled = [&] { return done == 2; };
  ASSERT_OK_AND_ASSIGN(const RepeatResult result, RepeatStartup(options));
  EXPECT_EQ(result.document.samples.size(), 2u);
}

}  // namespace
}  // namespace firstframe
