#include "lib/regions/source_scanner.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace firstframe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Scan(const std::string& text,
                              SourceLanguage language) {
  constexpr const char* kKinds[] = {"reg", "disabled", "use", "doc", "request"};
  std::vector<std::string> found;
  for (const RegionMention& mention : ScanSource(text, language)) {
    found.push_back(absl::StrCat(kKinds[static_cast<int>(mention.kind)], " ",
                                 mention.name, " ", mention.line));
  }
  return found;
}

TEST(SourceScanner, PythonRegistrationsAndUses) {
  EXPECT_THAT(Scan(R"py("""Module text.

    with controller.region("in_docstring"):
"""
register_profiler_region(
    name="profiler_region_decode",
    description="x",
)
register_profiler_region('second', "y")
# register_profiler_region(
#     name="profiler_region_third",
# )
with profiler_region("decode"): pass
@profile_region("profiler_region_second")
def f(self):
    with self.profiler_controller.region("decode"):  # controller.region("no")
        session.region("us-east-1")
    torch.cuda.nvtx.range_push("fastvideo.region::third")
SCRIPT = """
with profiler_region("in_script"): pass
"""
)py",
                   SourceLanguage::kPython),
              ElementsAre("doc in_docstring 3", "reg decode 5", "reg second 9",
                          "disabled third 10", "use decode 13", "use second 14",
                          "use decode 16", "use third 18", "use in_script 20"));
}

TEST(SourceScanner, Requests) {
  EXPECT_THAT(
      Scan("export FASTVIDEO_TORCH_PROFILE_REGIONS=\"a, profiler_region_b\"\n"
           "FASTVIDEO_TORCH_PROFILE_REGIONS=c,-d,e*,all cmd\n"
           "FASTVIDEO_TORCH_PROFILE_REGIONS=$REGIONS\n",
           SourceLanguage::kSettings),
      ElementsAre("request a 1", "request b 1", "request c 2", "request e* 2"));
  EXPECT_THAT(Scan("os.environ[\"FASTVIDEO_TORCH_PROFILE_REGIONS\"] = 'a'\n"
                   "setenv(\"FASTVIDEO_TORCH_PROFILE_REGIONS\", \"b\")\n"
                   "x = os.getenv(\"FASTVIDEO_TORCH_PROFILE_REGIONS\", \"\")\n",
                   SourceLanguage::kPython),
              ElementsAre("request a 1", "request b 2"));
}

TEST(SourceScanner, Markdown) {
  EXPECT_THAT(
      Scan("# Guide\n\n- `profiler_region_decode` - text\n"
           "```bash\nFASTVIDEO_TORCH_PROFILE_REGIONS=\"profiler_region_"
           "decode,other\"\n```\n"
           "Use `with c_controller.region(\"your_region\"):`\n"
           "The `profiler_region_` prefix.\n",
           SourceLanguage::kMarkdown),
      ElementsAre("doc decode 3", "request decode 5", "request other 5"));
}

TEST(SourceScanner, Cpp) {
  EXPECT_THAT(
      Scan(R"src(
const bool kA = RegisterRegion({.name = "decode", .description = "d"});
// RegisterRegion({.name = "gone"});
/* FF_PROFILE_REGION("gone2"); */
void F() {
  ProfilerRegion region("decode");
  FF_PROFILE_REGION("encode");
  ProfiledCall("third", [] {});
  const int n = 10'000; const char* url = "http://x"; ProfilerRegion r{"last"};
  nvtxRangePushA("fastvideo.region::nv");
}
)src",
           SourceLanguage::kCpp),
      ElementsAre("reg decode 2", "disabled gone 3", "use decode 6",
                  "use encode 7", "use third 8", "use last 9", "use nv 10"));
}

TEST(SourceScanner, EveryPrefixAndAnyByteIsTaken) {
  const std::string text =
      "\xff\xfe'''\nregister_profiler_region(name=\"a\xe4\xb8\xad\")\n"
      "FASTVIDEO_TORCH_PROFILE_REGIONS=\"b\"\n\"unclosed \\";
  for (size_t n = 0; n <= text.size(); ++n) {
    for (const SourceLanguage language :
         {SourceLanguage::kPython, SourceLanguage::kCpp,
          SourceLanguage::kMarkdown, SourceLanguage::kSettings}) {
      for (const RegionMention& m : ScanSource(text.substr(0, n), language)) {
        EXPECT_GE(m.line, 1);
        EXPECT_FALSE(m.name.empty());
      }
    }
  }
  EXPECT_THAT(Scan("no names here", SourceLanguage::kPython), IsEmpty());
}

TEST(SourceScanner, LanguageByExtension) {
  EXPECT_EQ(LanguageOfPath("a/b.py"), SourceLanguage::kPython);
  EXPECT_EQ(LanguageOfPath("a.cu"), SourceLanguage::kCpp);
  EXPECT_EQ(LanguageOfPath("README.md"), SourceLanguage::kMarkdown);
  EXPECT_EQ(LanguageOfPath("run.sh"), SourceLanguage::kSettings);
  EXPECT_EQ(LanguageOfPath("a.d/file"), std::nullopt);
  EXPECT_EQ(LanguageOfPath("a.png"), std::nullopt);
}

}  // namespace
}  // namespace firstframe
