#include "lib/regions/region_report.h"

#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;

SourceCheck OneFinding() {
  SourceCheck check;
  check.tree_registers = true;
  check.registered = {"decode"};
  check.findings.push_back({RegionFindingKind::kMisspelt, "decod", "a,b:c.py",
                            7, "100% \"odd\"\nname", "decode"});
  return check;
}

TEST(RegionReport, Github) {
  std::ostringstream out;
  WriteSourceCheck({}, OneFinding(), RegionReportFormat::kGithub, out);
  EXPECT_EQ(out.str(),
            "::error file=a%2Cb%3Ac.py,line=7,title=misspelt::100%25 \"odd\""
            "%0Aname\n");
}

TEST(RegionReport, Jsonl) {
  std::ostringstream out;
  WriteSourceCheck({}, OneFinding(), RegionReportFormat::kJsonl, out);
  EXPECT_THAT(
      out.str(),
      HasSubstr(R"({"kind":"finding","finding":"misspelt","severity":"error",)"
                R"("name":"decod","path":"a,b:c.py","line":7,"message":)"
                R"("100% \"odd\"\nname","nearest":"decode"})"
                "\n"));
  EXPECT_THAT(out.str(), HasSubstr(R"("error_count":1,"warning_count":0)"));
}

TEST(RegionReport, Text) {
  std::ostringstream out;
  WriteSourceCheck({.file_count = 3}, OneFinding(), RegionReportFormat::kText,
                   out);
  EXPECT_THAT(out.str(), HasSubstr("a,b:c.py:7: error: "));
  EXPECT_THAT(out.str(), HasSubstr("3 files, 1 registered regions, 1 error, "
                                   "0 warnings\n"));
}

TEST(RegionReport, RegistryListsEveryRegion) {
  const RegionRegistry registry = RegionRegistry::Default();
  std::ostringstream text, json;
  WriteRegistry(registry, RegionReportFormat::kText, text);
  WriteRegistry(registry, RegionReportFormat::kJsonl, json);
  for (const std::string& name : registry.Names()) {
    EXPECT_THAT(text.str(), HasSubstr(name + " "));
    EXPECT_THAT(json.str(), HasSubstr("\"span\":\"fastvideo.region::" + name));
  }
}

}  // namespace
}  // namespace firstframe
