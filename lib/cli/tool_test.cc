#include "lib/cli/tool.h"

#include <cstdint>

#include "absl/flags/flag.h"
#include "gtest/gtest.h"
#include "lib/cli/flag_table.h"
#include "lib/cli/help.h"
#include "lib/testing/status_matchers.h"

// Flags belong to the tool whose file defines them: these pretend.
#line 1 "tools/example.cc"
ABSL_FLAG(int, frames, 9, "Frames of the output.");
ABSL_FLAG(bool, synchronize, true, "Wait for the device.");
ABSL_FLAG(std::string, device, "auto", "Where to run.");
ABSL_FLAG(double, rtol, 1e-5, "Relative tolerance.");
ABSL_FLAG(std::string, latent, "", "{FILE} Tensor to decode.");
#line 23 "lib/cli/tool_test.cc"

namespace firstframe::cli {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::IsOkAndHolds;
using ::firstframe::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Tool ExampleTool() {
  return {.name = "example",
          .summary = "Shows how a tool is described.",
          .arguments = "FILE...",
          .formats = {Format::kText, Format::kJson},
          .has_color = true,
          .groups = {{"Input", {"latent"}}},
          .choices = {{"device", {"auto", "cpu", "cuda"}}},
          .exits = {{Exit::kFinding, "the files differ"}},
          .environment = {{"EXAMPLE_LEVEL", "How much to say."}},
          .examples = {{"example a.bin", "Reads a.bin."}}};
}

class ParseFlagsTest : public ::testing::Test {
 protected:
  absl::StatusOr<Arguments> Parse(const std::vector<std::string>& words) {
    given_.clear();
    return ParseFlags(table_, words, &given_);
  }

  CommonFlags common_;
  FlagTable table_ = BuildFlagTable(ExampleTool(), &common_);
  std::vector<std::string> given_;
};

TEST_F(ParseFlagsTest, TakesValuesInBothForms) {
  EXPECT_THAT(Parse({"--frames=5", "a", "--rtol", "0.5", "b"}),
              IsOkAndHolds(ElementsAre("a", "b")));
  EXPECT_EQ(absl::GetFlag(FLAGS_frames), 5);
  EXPECT_EQ(absl::GetFlag(FLAGS_rtol), 0.5);
  EXPECT_THAT(given_, ElementsAre("frames", "rtol"));
}

TEST_F(ParseFlagsTest, NegatesBoolsAndTakesDashesInNames) {
  EXPECT_THAT(Parse({"--nosynchronize"}), IsOk());
  EXPECT_FALSE(absl::GetFlag(FLAGS_synchronize));
  EXPECT_THAT(Parse({"--synchronize", "true"}),
              IsOkAndHolds(ElementsAre("true")));
  EXPECT_TRUE(absl::GetFlag(FLAGS_synchronize));
  EXPECT_THAT(Parse({"--nosynchronize=true"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("takes no value")));
}

TEST_F(ParseFlagsTest, StopsAtTwoDashes) {
  EXPECT_THAT(Parse({"a", "--", "--frames=7", "--"}),
              IsOkAndHolds(ElementsAre("a", "--frames=7", "--")));
}

TEST_F(ParseFlagsTest, DashAndNegativeNumbersAreWords) {
  EXPECT_THAT(Parse({"-", "-3", "-.5"}),
              IsOkAndHolds(ElementsAre("-", "-3", "-.5")));
}

TEST_F(ParseFlagsTest, SuggestsTheNearestFlag) {
  EXPECT_THAT(Parse({"--frmaes=5"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("did you mean --frames?")));
  EXPECT_THAT(Parse({"--zzzzzz"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                            Not(HasSubstr("did you mean"))));
  EXPECT_THAT(Parse({"-x"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("unknown flag -x")));
}

TEST_F(ParseFlagsTest, RefusesValuesOfTheWrongType) {
  for (const std::string word :
       {"--frames=", "--frames=abc", "--frames=1.5", "--frames=99999999999",
        "--rtol=x", "--synchronize=maybe", "--device=tpu", "--format=xml"}) {
    EXPECT_THAT(Parse({word}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--")))
        << word;
  }
  EXPECT_THAT(Parse({"--device=cuad"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("did you mean cuda?")));
  EXPECT_THAT(Parse({"--frames"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("needs a value")));
}

TEST_F(ParseFlagsTest, CommonFlagsAreInTheTable) {
  EXPECT_THAT(Parse({"--format=json", "--output=x", "-q"}),
              IsOkAndHolds(IsEmpty()));
  EXPECT_EQ(common_.format, Format::kJson);
  EXPECT_EQ(common_.output, "x");
  EXPECT_TRUE(common_.quiet);
}

TEST_F(ParseFlagsTest, OnlyTheToolsOwnFlagsAreShown) {
  const std::string help = RenderHelp(ExampleTool(), table_);
  EXPECT_THAT(help, HasSubstr("--frames=N\n      Frames of the output."));
  EXPECT_THAT(help, HasSubstr("--latent=FILE\n      Tensor to decode."));
  EXPECT_THAT(help, HasSubstr("--device=auto|cpu|cuda"));
  EXPECT_THAT(help, HasSubstr("  1  the files differ"));
  EXPECT_THAT(help, HasSubstr("EXAMPLE_LEVEL"));
  EXPECT_THAT(help, Not(HasSubstr("gtest")));
}

TEST_F(ParseFlagsTest, EveryRenderingNamesEveryFlag) {
  const Tool tool = ExampleTool();
  for (const std::string& text :
       {RenderHelp(tool, table_), RenderMarkdown(tool, table_),
        RenderBash(tool, table_), RenderMan(tool, table_)}) {
    for (const std::string& name : table_.Names()) {
      EXPECT_THAT(text, HasSubstr(name));
    }
  }
}

TEST(WrapText, BreaksAtSpaces) {
  EXPECT_EQ(WrapText("aa bb cc", 2, 8), "  aa bb\n  cc\n");
  EXPECT_EQ(WrapText("toolongword x", 0, 4), "toolongword\nx\n");
  EXPECT_EQ(WrapText("", 3), "\n");
}

TEST(UsageError, IsToldFromOtherErrors) {
  EXPECT_TRUE(IsUsageError(UsageError("x")));
  EXPECT_FALSE(IsUsageError(absl::InvalidArgumentError("x")));
}

}  // namespace
}  // namespace firstframe::cli
